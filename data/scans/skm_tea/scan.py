"""One SKM-TEA scan, read slice by slice along the readout."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.hdf5 import Hdf5File
from data.scans.scan import Scan, Segmentation, Timing
from data.scans.skm_tea.layout import DTYPE, KSPACE, MAPS, MASKS, TARGET, ScanRecord, dataset_shapes, mask_key
from lab.errors import UserError, readable
from lab.paths import plain_name

SKM_TEA_PADDING = (96, 80)
"""How many zero lines SKM-TEA's k-space has along ky and kz, whatever its size."""
SKM_TEA_NAME, SKM_TEA_PLANE = re.compile(r"MTR_\d{3}"), (512, 512)
"""What its scans are called, and their first two sides: others in the same layout are somebody's own."""
TIMING = ("repetition_ms", "echo_1_ms", "flip_degrees")
SEGMENTATION = "segmentation"


class SkmTeaScan(Scan):
    """A file of the raw-data track; its keys, types and shapes are checked when it is opened, its data are not read."""

    def __init__(self, path: str | Path, record: ScanRecord | None = None) -> None:
        self.file = Hdf5File(path)
        self.path = self.file.path
        self.scan_id = record.scan_id if record else plain_name(self.path.stem, f"the name of {self.path}")
        if record:
            self.voxel_spacing, self.orientation = record.voxel_spacing, record.orientation
        want = record.matrix_shape if record else (None, None, None)
        x, ky, kz, echoes, coils = self.file.check(KSPACE, DTYPE, (*want, None, None))
        for name, shape in dataset_shapes((x, ky, kz), coils, echoes).items():
            self.file.check(name, DTYPE, shape)
        self.matrix_shape = (x, ky, kz)
        self.num_coils, self.num_echoes = coils, echoes
        self.acquired_grid = self._find_acquired_grid()
        attributes = self.file.attributes()
        # Files that no scanner made say so themselves.
        self.origin = str(attributes.get("origin", self._usual_origin()))
        if all(isinstance(attributes.get(name), int | float) for name in TIMING):
            self.timing = Timing(*(float(attributes[name]) for name in TIMING))
        self._seed = attributes.get("subject_seed") if self.origin == "synthetic knee" else None
        self.file.close()

    def read(self, slice_index: int, echo: int) -> tuple[Tensor, Tensor, Tensor]:
        """K-space (coils, ky, kz), maps (coils, ky, kz) and target (ky, kz)."""
        kspace = self._read_echo(KSPACE, slice_index, echo)
        maps = self.file.read(MAPS, slice_index)[..., 0]
        target = self._read_echo(TARGET, slice_index, echo)[..., 0]
        return _coils_first(kspace), _coils_first(maps), torch.from_numpy(np.ascontiguousarray(target))

    def read_target(self, slice_index: int) -> np.ndarray:
        """Targets (ky, kz, echoes) of a slice."""
        return self.file.read(TARGET, slice_index)[..., 0]

    def kspace(self, slice_index: int, echo: int = 0) -> NDArray[np.complex64]:
        return _coils_first(self._read_echo(KSPACE, slice_index, echo)).numpy()

    def echo_time(self, echo: int) -> float | None:
        """The second of the two echoes of qDESS is as far from the next pulse as the first is from its own."""
        if self.timing is None or echo != 1 or self.num_echoes != 2:
            return super().echo_time(echo)
        return 2 * self.timing.repetition_ms - self.timing.echo_ms

    def segmentation(self) -> Segmentation | None:
        """The data set `segmentation` (x, y, z), its attribute `names` JSON; that of synthetic knees is drawn again."""
        if SEGMENTATION in self.file:
            self.file.check(SEGMENTATION, "uint8", self.matrix_shape)
            with readable(
                self.path, "the attribute 'names' of its segmentation should be JSON, names by number"
            ):
                stored = json.loads(self.file.dataset(SEGMENTATION).attrs.get("names", "{}"))
                names = {int(key): str(value) for key, value in stored.items()}
            return Segmentation(self.file.read(SEGMENTATION), names)
        if not isinstance(self._seed, int):
            return None
        from data.knee.generate import segmentation

        return segmentation(self._seed, self.matrix_shape)

    def mask(self, acceleration: float) -> Tensor | None:
        """The mask that came with the file, bool (acquired ky, acquired kz), or None if there is none."""
        key = mask_key(acceleration)
        if acceleration != round(acceleration, 1) or key not in self.file:  # names have one decimal
            return None
        mask = np.asarray(self.file.read(key))
        if mask.shape != self.acquired_grid:
            raise UserError(
                f"{self.path}: {key!r} has the shape {mask.shape}, other masks {self.acquired_grid}."
            )
        if not np.isin(mask, (0, 1)).all():
            raise UserError(f"{self.path}: {key!r} should hold 0 and 1 only; make the mask again.")
        return torch.from_numpy(mask.astype(bool))

    def _usual_origin(self) -> str:
        theirs = SKM_TEA_NAME.fullmatch(self.path.stem) and self.matrix_shape[:2] == SKM_TEA_PLANE
        return "SKM-TEA" if theirs else "own data in SKM-TEA's layout"

    def _read_echo(self, name: str, slice_index: int, echo: int) -> Any:
        # Picking one echo of an array stored without chunks would be thousands of tiny reads.
        chunks = self.file.dataset(name).chunks
        if chunks is not None and chunks[3] == 1:
            return self.file.read(name, (slice_index, slice(None), slice(None), echo))
        return self.file.read(name, slice_index)[:, :, echo]

    def _find_acquired_grid(self) -> tuple[int, int]:
        """The shape of the file's masks; without masks, SKM-TEA's constant padding taken off."""
        stored = self.matrix_shape[1:]
        for name, grid in self.file.shapes(MASKS).items():
            if len(grid) != 2 or any(inner > outer for inner, outer in zip(grid, stored, strict=True)):
                raise UserError(f"{self.path}: mask {name!r} has the shape {grid}, k-space only {stored}.")
            return (grid[0], grid[1])
        grid = (stored[0] - SKM_TEA_PADDING[0], stored[1] - SKM_TEA_PADDING[1])
        if min(grid) < 1:
            raise UserError(
                f"{self.path} has no masks, so the acquired grid is unknown; SKM-TEA's padding of "
                f"{SKM_TEA_PADDING[0]} x {SKM_TEA_PADDING[1]} lines does not fit its {stored[0]} x {stored[1]}."
            )
        return grid


def _coils_first(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array).permute(2, 0, 1).contiguous()
