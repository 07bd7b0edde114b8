"""Read trajectories: generated files and the public MATLAB files, by whatever name.

A generated file is read sample by sample. A MATLAB file (v5, or v7.3, which is HDF5 with the axes reversed) is
read into memory once, because its layout spreads a sample over the whole file.
"""

import os
import re
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset

from data.generated import open_file
from lab.errors import UserError
from lab.files import fingerprint

Array = npt.NDArray[np.float32]


class Trajectories(Dataset[Tensor]):
    """Trajectories of vorticity; item i is a tensor w[x, y, frame].

    Safe in DataLoader workers and picklable: every process opens the file for itself.
    """

    def __init__(self, source: "Source", samples: range, frames: int) -> None:
        self.source, self.samples, self.frames = source, samples, frames

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Tensor:
        trajectory = self.source.read(self.samples[index])[..., : self.frames]
        return torch.from_numpy(np.ascontiguousarray(trajectory))

    def split(self, num_train: int, num_test: int) -> tuple["Trajectories", "Trajectories"]:
        """The first `num_train` samples to train on and the last `num_test` to test on."""
        if num_train + num_test > len(self):
            raise UserError(
                f"{self.source.path} offers {len(self)} samples, fewer than {num_train} to train on "
                f"and {num_test} to test on; ask for fewer or make more."
            )
        train, test = self.samples[:num_train], self.samples[len(self) - num_test :]
        return Trajectories(self.source, train, self.frames), Trajectories(self.source, test, self.frames)

    def pairs(self) -> "FramePairs":
        """All consecutive frames as a data set of (now, next)."""
        return FramePairs(self)

    def load(self) -> Tensor:
        """All samples at once: w[sample, x, y, frame]."""
        return torch.stack([self[i] for i in range(len(self))])

    @property
    def nu(self) -> float | None:
        """Viscosity, where the file or its name tells it."""
        return self.source.nu

    @property
    def resolution(self) -> int:
        """Points per side."""
        return self.source.shape[1]

    def describe(self) -> dict[str, Any]:
        """What a record of a run should say of its data."""
        return {
            "file": self.source.path.name,
            "fingerprint": self.source.fingerprint,
            "nu": self.nu,
            "samples": [self.samples.start, self.samples.stop],
            "frames": self.frames,
            "resolution": self.resolution,
        }


class FramePairs(Dataset[tuple[Tensor, Tensor]]):
    """All pairs of consecutive frames w[x, y] of some trajectories, those of one trajectory after another."""

    def __init__(self, trajectories: Trajectories) -> None:
        self.trajectories = trajectories

    def __len__(self) -> int:
        return len(self.trajectories) * (self.trajectories.frames - 1)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} pairs, and {index} is not one of them.")
        sample, frame = divmod(index, self.trajectories.frames - 1)
        trajectory = self.trajectories[sample]
        return trajectory[..., frame].clone(), trajectory[..., frame + 1].clone()


def open_trajectories(
    path: str | Path, *, nu: float | None = None, num_samples: int | None = None, frames: int | None = None
) -> Trajectories:
    """Open a generated or public file and check it; `num_samples` and `frames` keep the first so many.

    `nu` is the viscosity that the file is expected to have.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"there is no file {path}.")
    source: Source
    if h5py.is_hdf5(path) or path.suffix in (".h5", ".hdf5"):
        with open_file(path) as file:
            generated = "fingerprint" in file.attrs
        source = Generated(path) if generated else Public(path, num_samples, frames)
    else:
        source = Public(path, num_samples, frames)
    available, _, _, frames_there = source.shape
    for what, flag, wanted, there in (
        ("samples", "num_samples", num_samples, available),
        ("frames", "frames", frames, frames_there),
    ):
        if wanted is not None and wanted > there:
            raise UserError(
                f"{path} has {there} {what}, fewer than the {wanted} asked for; set {flag} to {there}."
            )
    if nu is not None and source.nu is not None and not np.isclose(nu, source.nu, rtol=1e-6, atol=0):
        raise UserError(
            f"{path} has a viscosity of {source.nu:g} where {nu:g} was expected; give another file."
        )
    chosen = range(available if num_samples is None else num_samples)
    return Trajectories(source, chosen, frames_there if frames is None else frames)


def viscosity_in_name(name: str) -> float | None:
    """The viscosity that a public file name tells.

    Names such as V100 and V10000 give a number whose meaning was never written down: they tell nothing.

    >>> viscosity_in_name("NavierStokes_V1e-5_N1200_T20.mat"), viscosity_in_name("ns_V0.0001_N1200_T30.mat")
    (1e-05, 0.0001)
    >>> viscosity_in_name("ns_data_V10000_N1200_T20.mat") is None
    True
    """
    match = re.search(r"_V(\d+(?:\.\d+)?e-\d+|0?\.\d+)(?=_|\.mat|$)", name)
    return float(match.group(1)) if match else None


class Source(Protocol):
    """Where trajectories come from: `shape` is (samples, x, y, frames)."""

    path: Path
    shape: tuple[int, int, int, int]
    nu: float | None
    fingerprint: str

    def read(self, sample: int) -> Array:
        """The trajectory w[x, y, frame] of one sample."""
        ...


class Generated:
    """A file made by the generator, opened by each process when it first reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open: tuple[int, h5py.File] | None = None
        with open_file(path) as file:
            u = _dataset(file, path)
            self.shape = _checked_shape(u.shape, path)
            self.nu: float | None = float(file.attrs["nu"])
            self.fingerprint = str(file.attrs["fingerprint"])
            if self.shape[0] != file.attrs["num_samples"]:
                said = file.attrs["num_samples"]
                raise UserError(f"{path} should hold {said} samples and holds {self.shape[0]}; make it anew.")

    def read(self, sample: int) -> Array:
        """One chunk of the file."""
        if self._open is None or self._open[0] != os.getpid():  # a handle must not cross a fork
            self._open = os.getpid(), open_file(self.path)
        try:
            trajectory = np.asarray(self._open[1]["u"][sample], dtype=np.float32)
        except OSError as error:
            raise UserError(
                f"{self.path}: sample {sample} cannot be read ({error}); make the file anew."
            ) from error
        _check_finite(trajectory[None], self.path, sample)
        return trajectory

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": None}


class Public:
    """A MATLAB file of the FNO authors, v5 or v7.3, its first samples and frames held in memory.

    A process that unpickles it reads it again.
    """

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._kept = path, (num_samples, frames)
        self.nu = viscosity_in_name(path.name)
        self._u: Array | None = self._load()
        self.shape = _checked_shape(self._u.shape, path)
        _check_finite(self._u, path)
        ends = [self._u[0].tobytes(), self._u[-1].tobytes()]
        self.fingerprint = fingerprint([self.shape, *(end.hex() for end in ends)])

    def read(self, sample: int) -> Array:
        """One sample from memory."""
        if self._u is None:
            self._u = self._load()
        return self._u[sample]

    def _load(self) -> Array:
        load = _load_v73 if h5py.is_hdf5(self.path) else _load_v5
        return np.ascontiguousarray(load(self.path, *self._kept), dtype=np.float32)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_u": None}


def _load_v73(path: Path, num_samples: int | None, frames: int | None) -> npt.NDArray[Any]:
    """HDF5 written by MATLAB has its axes in reverse; a copy saved by others may not, as its times tell."""
    with open_file(path) as file:
        u = _dataset(file, path)
        _checked_shape(u.shape, path)
        times = file["t"].size if "t" in file else None
        straight = times is not None and u.shape[-1] == times and u.shape[0] != times
        try:
            values = u[:num_samples, :, :, :frames] if straight else u[:frames, :, :, :num_samples]
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error}); it is truncated: copy it again.") from error
    return values if straight else values.T


def _load_v5(path: Path, num_samples: int | None, frames: int | None) -> npt.NDArray[Any]:
    from scipy.io import loadmat, whosmat

    try:
        keys = [name for name, *_ in whosmat(path)]
        found = loadmat(path, variable_names=["u"])
    except Exception as error:  # its parser raises a dozen kinds on a damaged file
        raise UserError(
            f"{path} cannot be read as a MATLAB file ({error}); it is truncated or of another kind: copy it again."
        ) from error
    if "u" not in found:
        raise UserError(
            f"{path} has no array u, but {', '.join(keys) or 'nothing'}; it is truncated or another file."
        )
    u = np.asarray(found["u"])
    _checked_shape(u.shape, path)
    return u[:num_samples, :, :, :frames]


def _dataset(file: h5py.File, path: Path) -> h5py.Dataset:
    if "u" not in file:
        raise UserError(
            f"{path} has no array u, but {', '.join(file) or 'nothing'}; it is truncated or another file."
        )
    return file["u"]


def _checked_shape(shape: tuple[int, ...], path: Path) -> tuple[int, int, int, int]:
    if len(shape) != 4 or shape[1] != shape[2] or 0 in shape:
        raise UserError(f"{path} has u of shape {shape}; (samples, n, n, frames) was expected.")
    samples, x, y, frames = shape
    return samples, x, y, frames


def _check_finite(u: Array, path: Path, first: int = 0) -> None:
    for i, trajectory in enumerate(u, start=first):
        if not np.isfinite(trajectory).all():
            raise UserError(
                f"{path}: sample {i} contains NaN or infinity; the file is damaged, make or copy it again."
            )
