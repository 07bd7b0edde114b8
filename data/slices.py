"""What every MRI data set looks like from outside: scans, and their 2-D slices one by one.

A scan is a stack of 2-D problems: coil k-space (coils, ky, kz), coil maps of the same shape, and the image
(ky, kz) that fully sampled k-space gives. SKM-TEA, synthetic knees and fastMRI differ only in how they are read.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from data.hdf5 import Hdf5File
from lab.errors import UserError
from lab.files import fingerprint, read_json, write_json
from lab.paths import datasets_dir
from lab.progress import Progress


class Slice(NamedTuple):
    """One 2-D problem. Tensors are as stored; divide `kspace` and `target` by `scale` to normalise."""

    kspace: Tensor
    """complex64 (coils, ky, kz), fully sampled, centred."""
    maps: Tensor
    """complex64 (coils, ky, kz)."""
    target: Tensor
    """complex64 (ky, kz)."""
    scale: float
    """Standard deviation of |target| over the scan's whole volume, all echoes."""
    scan_id: str
    slice_index: int
    echo: int
    position: int
    """Place in the data set; with the seed and the epoch it chooses the training mask."""


class Scan(ABC):
    """One examination on disk. Subclasses know the format; nothing is read before it is asked for."""

    file: Hdf5File
    scan_id: str
    matrix_shape: tuple[int, int, int]
    """(slices, ky, kz) as stored, zero-padding included."""
    acquired_grid: tuple[int, int]
    """(ky, kz) that the scanner acquired, in the middle of the stored grid; masks are made for it."""
    num_coils: int
    num_echoes: int
    voxel_spacing: tuple[float, float, float]
    """Millimetres along the axes of `matrix_shape`."""

    @abstractmethod
    def read(self, slice_index: int, echo: int) -> tuple[Tensor, Tensor, Tensor]:
        """K-space, maps and target of one slice and echo."""

    @abstractmethod
    def read_target(self, slice_index: int) -> np.ndarray:
        """The targets of a slice, all echoes, in any order of axes."""

    @property
    def num_slices(self) -> int:
        """How many 2-D problems a volume consists of."""
        return self.matrix_shape[0]

    @cached_property
    def scale(self) -> float:
        """Standard deviation of |target| over the volume, all echoes; computed once, then kept on disk."""
        path = self._statistics_path()
        if not path.exists():
            write_json(path, {"file": str(self.file.path), "std": self._standard_deviation()})
        return float(read_json(path)["std"])

    @property
    def scale_is_known(self) -> bool:
        """Whether `scale` costs nothing."""
        return "scale" in self.__dict__ or self._statistics_path().exists()

    @property
    def file_key(self) -> str:
        """Tells this file from others of its name, and from itself after a change; names what is cached of it."""
        status = self.file.path.stat()
        return fingerprint([str(self.file.path.resolve()), status.st_size, status.st_mtime_ns])

    def _statistics_path(self) -> Path:
        return datasets_dir() / "statistics" / f"{self.scan_id}-{self.file_key}.json"

    def _standard_deviation(self) -> float:
        count, total, squares = 0, 0.0, 0.0
        for slice_index in range(self.num_slices):
            magnitude = np.abs(self.read_target(slice_index)).astype(np.float64)
            count += magnitude.size
            total += magnitude.sum()
            squares += np.square(magnitude).sum()
        deviation = (squares / count - (total / count) ** 2) ** 0.5
        if not deviation > 0 or not np.isfinite(deviation):
            raise UserError(
                f"{self.file.path}: the target is constant or not finite, so it cannot be normalised."
            )
        return float(deviation)


class SliceDataset(Dataset[Slice]):
    """The slices of some scans, scan by scan, slice by slice, echo by echo; read when they are asked for.

    The data set of one scan and one echo is that volume, in order. Batches of scans with different numbers
    of coils need `collate`.
    """

    def __init__(self, scans: Sequence[Scan], echoes: Sequence[int] | None = None) -> None:
        self.scans = list(scans)
        self.items = [
            (scan, slice_index, echo)
            for scan in self.scans
            for slice_index in range(scan.num_slices)
            for echo in (range(scan.num_echoes) if echoes is None else echoes)
        ]
        for scan, _, echo in self.items:
            if echo not in range(scan.num_echoes):
                raise UserError(f"{scan.scan_id} has {scan.num_echoes} echoes; there is no echo {echo + 1}.")
        self._compute_scales()

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Slice:
        scan, slice_index, echo = self.items[index]
        kspace, maps, target = scan.read(slice_index, echo)
        return Slice(
            kspace, maps, target, scan.scale, scan.scan_id, slice_index, echo, range(len(self))[index]
        )

    def _compute_scales(self) -> None:
        unknown = [scan for scan in self.scans if not scan.scale_is_known]
        if unknown:
            with Progress(len(unknown), "normalisation", unit="scan") as progress:
                for scan in unknown:
                    _ = scan.scale
                    progress.advance()


def collate(slices: Sequence[Slice]) -> Slice:
    """Stack slices into a batch; those with fewer coils get empty ones, which add nothing to any SENSE sum."""
    coils = max(one.kspace.shape[0] for one in slices)
    return default_collate(
        [one._replace(kspace=_fill(one.kspace, coils), maps=_fill(one.maps, coils)) for one in slices]
    )


def _fill(tensor: Tensor, coils: int) -> Tensor:
    missing = coils - tensor.shape[0]
    return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])]) if missing else tensor
