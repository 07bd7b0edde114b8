"""What every scan looks like from outside, whatever its format."""

from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.scans.sampling import Sampling
from lab.errors import UserError, readable
from lab.files import fingerprint, read_json, write_json
from lab.paths import datasets_dir


class Timing(NamedTuple):
    """Repetition time, time of the first echo, and flip angle of the sequence."""

    repetition_ms: float
    echo_ms: float
    flip_degrees: float


class Segmentation(NamedTuple):
    """Which tissue each voxel is: whole numbers (slices, ky, kz), and what they mean."""

    labels: NDArray[np.integer]
    names: dict[int, str]


TOWARDS = {"R": (0, 1), "L": (0, -1), "A": (1, 1), "P": (1, -1), "S": (2, 1), "I": (2, -1)}
"""The world axis (right, front, head) and sign of a letter."""


class Scan(ABC):
    """One examination on disk: a stack of 2-D problems, read when they are asked for.

    Each has k-space (coils, ky, kz), coil maps of the same shape, and the image (ky, kz) that fully sampled
    k-space gives. A format's subclass sets the attributes and writes `read`.
    """

    path: Path
    scan_id: str
    origin: str
    """What kind of data it is, for people to read: "SKM-TEA", "fastMRI", "synthetic knee"."""
    matrix_shape: tuple[int, int, int]
    """(slices, ky, kz) as stored, zero-padding included."""
    acquired_grid: tuple[int, int]
    """(ky, kz) that the scanner acquired, in the middle of the stored grid; masks are made for it."""
    num_coils: int
    num_echoes: int = 1
    voxel_spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Millimetres along the axes of `matrix_shape`."""
    orientation: tuple[str, str, str] = ("SI", "AP", "LR")
    """From where to where each axis of `matrix_shape` runs; "SI" is from head to foot."""
    timing: Timing | None = None
    """What the file says of its sequence; needed for maps of T2."""
    three_dimensional: bool = True
    """Whether slices are positions along the readout of a 3-D scan; otherwise the readout is the first axis of each."""
    undersampled: bool = False
    """Whether it is reconstructed as it is; then it has no target, and no mask is simulated."""
    maps_are: str = "in the file"
    """Where the coil maps come from, for people to read."""

    @abstractmethod
    def read(self, slice_index: int, echo: int) -> tuple[Tensor, Tensor, Tensor]:
        """K-space, maps and target of one slice and echo."""

    def kspace(self, slice_index: int, echo: int = 0) -> NDArray[np.complex64]:
        """The k-space of a slice alone."""
        return self.read(slice_index, echo)[0].numpy()

    def checked(self, slice_index: int, echo: int) -> tuple[Tensor, Tensor, Tensor]:
        """What `read` gives, if it can be used: all numbers are finite."""
        with readable(self.path):
            found = self.read(slice_index, echo)
        for name, values in zip(("k-space", "coil maps", "target"), found, strict=True):
            if not torch.isfinite(torch.view_as_real(values)).all():
                raise UserError(
                    f"{self.path}: the {name} of slice {slice_index}, echo {echo + 1} contain NaN or infinity; "
                    "the file is damaged, make or copy it again."
                )
        return found

    def read_target(self, slice_index: int) -> np.ndarray:
        """The targets of a slice, all echoes, in any order of axes; a format may know a faster way."""
        return np.stack([self.read(slice_index, echo)[2].numpy() for echo in range(self.num_echoes)])

    def mask(self, acceleration: float) -> Tensor | None:
        """The mask that came with the scan, bool (acquired ky, acquired kz), or None if there is none."""
        return None

    def echo_time(self, echo: int) -> float | None:
        """Milliseconds from the pulse to an echo, where the file says; `timing` tells that of the first alone."""
        return self.timing.echo_ms if echo == 0 and self.timing is not None else None

    def segmentation(self) -> Segmentation | None:
        """The tissues of the voxels, where they are known."""
        return None

    @property
    def sampling(self) -> Sampling:
        """What was sampled of the middle slice, from its zeros."""
        return Sampling.of(self.kspace(self.num_slices // 2))

    @property
    def affine(self) -> NDArray[np.float64]:
        """Voxel indices to millimetres towards right, front and head; the origin is in the middle of the volume."""
        matrix = np.eye(4)
        matrix[:3, :3] = 0
        for axis, name in enumerate(self.orientation):
            world, sign = TOWARDS[name[1]]  # "SI" runs from head to foot
            matrix[world, axis] = sign * self.voxel_spacing[axis]
        middle = np.array([(n - 1) / 2 for n in self.matrix_shape])
        matrix[:3, 3] = -matrix[:3, :3] @ middle
        return matrix

    @property
    def directions(self) -> list[str]:
        """From where to where each axis of `matrix_shape` runs, to the nearest axis of the world: `orientation`, or
        what a format knows better."""
        opposite = {"R": "L", "L": "R", "A": "P", "P": "A", "S": "I", "I": "S"}
        ends = {place: letter for letter, place in TOWARDS.items()}
        found = []
        for axis in self.affine[:3, :3].T:
            world = int(np.abs(axis).argmax())
            towards = ends[world, int(np.sign(axis[world]))]
            found.append(opposite[towards] + towards)
        return found

    @property
    def num_slices(self) -> int:
        """How many 2-D problems a volume consists of."""
        return self.matrix_shape[0]

    @cached_property
    def scale(self) -> float:
        """Standard deviation of |target| over the volume, all echoes; computed once, then kept on disk."""
        path = self._statistics_path()
        if not path.exists():
            write_json(path, {"file": str(self.path), "std": self._standard_deviation()})
        with readable(path, "delete it and it is computed again"):
            return float(read_json(path)["std"])

    @property
    def scale_is_known(self) -> bool:
        """Whether `scale` costs nothing."""
        return "scale" in self.__dict__ or self._statistics_path().exists()

    @property
    def file_key(self) -> str:
        """Names what is cached for this file: differs between files of one name, and when the file changes."""
        status = self.path.stat()
        return fingerprint([str(self.path.resolve()), status.st_size, status.st_mtime_ns])

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
            raise UserError(f"{self.path}: the target is constant or not finite, so it cannot be normalised.")
        return float(deviation)
