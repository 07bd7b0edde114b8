"""The simulated scanner: coils, phase, noise, the acquired part of k-space, maps and target."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.knee.coils import CoilArray, Phase
from data.knee.config import Shape
from data.knee.lattice import Axes, Axis
from data.masks.plane import inside_corners
from data.masks.spec import MaskSpec
from data.scans.espirit import Espirit, MapEstimator
from data.scans.sense import centre, combine, fft2c, ifft2c
from data.scans.skm_tea.layout import KSPACE, MAPS, MASKS, TARGET, create_scan, mask_key
from lab.ending import let_signals_through

ESPIRIT: Final = Espirit(kernel=5, threshold=0.03, crop=0.0, coarsest=(64, 48))
"""Maps everywhere, also where there is no signal."""

MAP_BITS: Final = 7
"""Bits of the maps kept behind the leading one: an error of 0.2 %, far below that of the estimate, which
halves their size on disk."""

ACQUIRED_MASK: Final = f"{MASKS}/acquired"
"""All that was measured: the acquired grid without its corners."""

Slab = tuple[slice, NDArray[np.float32]]


@dataclass(frozen=True)
class Protocol:
    """What is fixed for all scans of a data set."""

    shape: Shape
    field_of_view: tuple[float, float, float]
    grid: tuple[int, int]
    calibration: tuple[int, int]
    coils: int
    noise: float

    def axes(self, rows: slice = slice(None)) -> Axes:
        """The grid of voxels; its origin is the voxel n // 2 of each axis."""
        x, y, z = (
            Axis((np.arange(n) - n // 2) * width, width)
            for n, width in zip(self.shape, self.voxel_spacing, strict=True)
        )
        return Axis(x.points[rows], x.width), y, z

    @property
    def voxel_spacing(self) -> tuple[float, float, float]:
        """Millimetres along (x, y, z)."""
        x, y, z = (extent / n for n, extent in zip(self.shape, self.field_of_view, strict=True))
        return x, y, z

    def centre(self, inner: tuple[int, int]) -> tuple[slice, slice]:
        """Where a smaller grid lies in the padded plane."""
        return centre(inner[0], self.shape[1]), centre(inner[1], self.shape[2])

    def support(self) -> NDArray[np.bool_]:
        """The samples that are acquired, in the padded plane: the grid without its corners."""
        support = np.zeros(self.shape[1:], bool)
        support[self.centre(self.grid)] = inside_corners(MaskSpec("poisson", self.grid, 2.0))
        return support


@dataclass
class Measured:
    """Slices of a scan: k-space (slices, echoes, coils, ky, kz), maps (slices, coils, y, z), target."""

    kspace: Tensor
    maps: Tensor
    target: Tensor


class Scanner:
    """Measures one subject slab by slab: the same numbers come out whatever the slabs."""

    def __init__(self, protocol: Protocol, seed: int) -> None:
        self.protocol, self.seed = protocol, seed
        self.coil_array = CoilArray(np.random.default_rng([seed, 1]), protocol.coils)
        self.phase = Phase(np.random.default_rng([seed, 2]))
        self._support = torch.from_numpy(protocol.support())
        self._estimate = MapEstimator((protocol.shape[1], protocol.shape[2]), ESPIRIT)

    def measure(self, rows: slice, echoes: NDArray[np.float32]) -> Measured:
        """Scan the rows of an object (echo, x, y, z) along the readout; slabs must come in order.

        The target is what SKM-TEA's is: SENSE of everything acquired, with the *estimated* maps.
        """
        axes = self.protocol.axes(rows)
        image = torch.from_numpy(echoes * self.phase.on(axes)[: len(echoes)]).transpose(0, 1)
        sensitivities = torch.from_numpy(self.coil_array.on(axes)).transpose(0, 1)
        kspace = fft2c(sensitivities.unsqueeze(1) * image.unsqueeze(2)) * self._support
        for row, slice_kspace in zip(range(*rows.indices(self.protocol.shape[0])), kspace, strict=True):
            slice_kspace[..., self._support] += self._noise(row, slice_kspace.shape[:2])
        calibration = kspace[(slice(None), 0, ..., *self.protocol.centre(self.protocol.calibration))]
        maps = round_mantissa(self._estimate(calibration.contiguous()), MAP_BITS)
        return Measured(kspace, maps, combine(ifft2c(kspace), maps.unsqueeze(1)))

    def _noise(self, row: int, channels: tuple[int, ...]) -> Tensor:
        rng = np.random.default_rng([self.seed, 3, row])
        numbers = rng.standard_normal((*channels, int(self._support.sum()), 2), dtype=np.float32)
        return torch.view_as_complex(torch.from_numpy(numbers * np.float32(self.protocol.noise / np.sqrt(2))))


def write_scan(
    path: Path,
    scanner: Scanner,
    slabs: Iterable[Slab],
    echoes: int,
    masks: Mapping[float, NDArray[np.bool_]],
    attributes: Mapping[str, str | int | float],
) -> None:
    """Scan an object given slab by slab and write the file; memory holds one slab at a time."""
    protocol = scanner.protocol
    with create_scan(path, protocol.shape, protocol.coils, attributes, echoes=echoes, compress=True) as file:
        for rows, images in slabs:
            let_signals_through()
            measured = scanner.measure(rows, images)
            file[KSPACE][rows] = measured.kspace.permute(0, 3, 4, 1, 2).numpy()
            file[MAPS][rows] = measured.maps.permute(0, 2, 3, 1).unsqueeze(-1).numpy()
            file[TARGET][rows] = measured.target.permute(0, 2, 3, 1).unsqueeze(-1).numpy()
        # The reader takes the acquired grid from the shape of the masks, so there is always one.
        file[ACQUIRED_MASK] = protocol.support()[protocol.centre(protocol.grid)]
        for acceleration, mask in masks.items():
            file[mask_key(acceleration)] = mask


def round_mantissa(values: Tensor, bits: int) -> Tensor:
    """Complex numbers whose parts keep `bits` binary digits behind the leading one, to nearest.

    >>> round_mantissa(torch.tensor([1.0 + 0.3j]), 4)
    tensor([1.+0.2969j])
    """
    drop = 23 - bits
    parts = torch.view_as_real(values.contiguous()).view(torch.int32)
    rounded = (parts + (1 << (drop - 1))) & ~((1 << drop) - 1)
    return torch.view_as_complex(rounded.view(torch.float32))
