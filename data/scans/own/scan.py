"""A scan of one's own: k-space read slice by slice, maps as given or by ESPIRiT, a target if it is fully sampled."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.scans.mapped import Mapped
from data.scans.maps import EstimatedMaps
from data.scans.own.notes import Notes, notes_path
from data.scans.own.store import file_key
from data.scans.sampling import Sampling
from data.scans.scan import Scan
from data.scans.sense import Sense
from lab.errors import UserError
from lab.files import fingerprint
from lab.paths import plain_name

UNEVEN = 0.1
"""How far the sum of squares of given maps may be from 1, and in what share of the points it may be further."""
CORNER = 8
"""The part of an axis, 1 / 8, in which the largest value of k-space that is not centred lies."""


class OwnScan(Scan):
    """K-space (slice, echo, coil, ky, kz) on disk, with maps (slice, coil, ky, kz) or a calibration scan beside it.

    There is a target only where k-space is fully sampled, every echo of it. What was sampled is found from the zeros of
    the middle slice.
    """

    def __init__(
        self,
        path: Path,
        kspace: Mapped,
        notes: Notes,
        *,
        maps: Mapped | None = None,
        calibration: Mapped | None = None,
        affine: NDArray[np.float64] | None = None,
        three_dimensional: bool = False,
        echo_times: Sequence[float] = (),
        mixing: Tensor | None = None,
        version: int = 1,
    ) -> None:
        """`mixing` (coil, coil) makes the coils of k-space of those that the maps are of, where these differ.

        `version` is that of what the format makes of a file: what was kept for an older one does not count."""
        self.three_dimensional, self._version = three_dimensional, version
        self._echo_times = list(echo_times)
        self.path, self.scan_id = path, plain_name(path.stem, f"the name of {path}")
        self.origin, self.timing, self._kspace, self._affine = notes.origin, notes.timing, kspace, affine
        slices, self.num_echoes, self.num_coils, ky, kz = kspace.shape
        self.matrix_shape = (slices, ky, kz)
        if notes.voxel_spacing:
            self.voxel_spacing = (notes.voxel_spacing[0], notes.voxel_spacing[1], notes.voxel_spacing[2])
        if notes.orientation:
            self.orientation = (notes.orientation[0], notes.orientation[1], notes.orientation[2])
        middle = np.asarray(kspace[slices // 2, 0])
        self._check(middle)
        self._sampling = self._found_sampling(middle)
        self.acquired_grid = self._sampling.acquired_grid
        self.undersampled = self._sampling.undersampled
        wanted = (slices, self.num_coils, ky, kz)
        if maps is not None and maps.shape != wanted:
            raise UserError(f"{maps.path} holds maps of shape {maps.shape} where {path} needs {wanted}.")
        self._given, self._mixing = maps, mixing
        self._to_scale = maps is not None and not _have_unit_power(self._mixed(maps, slices // 2))
        self._estimated = EstimatedMaps(self, calibration) if maps is None else None

    @property
    def sampling(self) -> Sampling:
        return self._sampling

    @property
    def affine(self) -> NDArray[np.float64]:
        return super().affine if self._affine is None else self._affine

    def echo_time(self, echo: int) -> float | None:
        return self._echo_times[echo] if echo < len(self._echo_times) else super().echo_time(echo)

    @property
    def maps_are(self) -> str:  # type: ignore[override]
        if self._estimated is not None:
            return str(self._estimated)
        return "given, divided by their root sum of squares" if self._to_scale else "given"

    @property
    def file_key(self) -> str:
        notes = notes_path(self.path)  # what they say of axes and timing decides what is kept
        beside = [notes] if notes.is_file() else []
        key = file_key(self.path, *beside, *([] if self._given is None else [self._given.path]))
        told = [self._version] * (self._version > 1) + ["scaled"] * self._to_scale
        return fingerprint([key, *told]) if told else key

    def kspace(self, slice_index: int, echo: int = 0) -> NDArray[np.complex64]:
        return np.array(self._kspace[slice_index, echo], np.complex64)

    def read(self, slice_index: int, echo: int) -> tuple[Tensor, Tensor, Tensor]:
        """K-space, maps and their SENSE combination: the target, or the zero-filled image if it is undersampled."""
        found = self._given if self._estimated is None else self._estimated.mapped
        assert found is not None
        kspace = torch.from_numpy(self.kspace(slice_index, echo))
        maps = self._mixed(found, slice_index)
        if self._to_scale:
            power = maps.abs().square().sum(0)
            maps = maps * torch.where(power > 0, power, 1.0).rsqrt()
        return kspace, maps, Sense(maps).adjoint(kspace)

    def _mixed(self, maps: Mapped, slice_index: int) -> Tensor:
        """Maps (coil, ky, kz) of a slice, of the coils that its k-space has."""
        found = torch.from_numpy(np.array(maps[slice_index], np.complex64))
        return found if self._mixing is None else torch.einsum("dc,cyz->dyz", self._mixing, found)

    def _found_sampling(self, middle: np.ndarray) -> Sampling:
        """That of the first echo, or of the first that was undersampled; of the others one coil is enough to tell."""
        first = Sampling.of(middle)
        if first.undersampled:
            return first
        others = (
            Sampling.of(self._kspace[self.num_slices // 2, echo, :1]) for echo in range(1, self.num_echoes)
        )
        return next((one for one in others if one.mask.any() and one.undersampled), first)

    def _check(self, middle: np.ndarray) -> None:
        strength = np.abs(middle).sum(0)
        if not np.isfinite(strength).all():
            raise UserError(f"{self.path}: k-space contains NaN or infinity; write it again without.")
        if not strength.any():
            raise UserError(
                f"{self.path}: the k-space of its middle slice is zero, so there is nothing to reconstruct."
            )
        top = np.unravel_index(int(strength.argmax()), strength.shape)
        if all(min(k, n - 1 - k) < n / CORNER for k, n in zip(top, strength.shape, strict=True)):
            raise UserError(
                f"{self.path}: k-space is largest in a corner, so frequency zero is not in the middle; "
                "apply fftshift to its k-space axes and write it again."
            )


def _have_unit_power(maps: Tensor) -> bool:
    """Whether sum_c |S_c|^2 is 1 where there are maps (coil, ky, kz), as everything that uses them expects."""
    power = maps.abs().square().sum(0)
    uneven = (power[power > 0] - 1).abs() > UNEVEN
    return not len(uneven) or float(uneven.float().mean()) <= UNEVEN
