"""The public Navier-Stokes files of the FNO authors: MATLAB v5, or v7.3, which is HDF5 with the axes reversed.

    u    (samples, x, y, frames)   vorticity, any precision; in v7.3 (frames, y, x, samples)
    t    (frames)                  1, 2, ...

Their layout spreads a sample over the whole file, so that one is read into memory once.
"""

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import torch

from data.fields.geometry import Box
from data.fields.layout import EVERY, Array, Grid, Layout, Source
from data.fields.matlab import load, shapes_in
from data.hdf5 import REAL, Hdf5File
from lab.errors import UserError
from lab.files import fingerprint


class FnoMatlab(Source):
    """Such a file, its first samples and frames held in memory. A process that unpickles it reads it again."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._kept = path, (num_samples, frames)
        self._u: Array | None = self._load()
        self.samples = range(len(self._u))
        nu = viscosity_in_name(path.name)
        ends = [self._u[0].tobytes(), self._u[-1].tobytes()]
        self.layout = Layout(
            problem="navier-stokes",
            names=("vorticity",),
            grid=Grid.of(Box(), self._u.shape[1]),
            times=torch.arange(1.0, self._u.shape[-1] + 1, dtype=torch.float64),
            parameters={} if nu is None else {"nu": nu},
            fingerprint=fingerprint([self._u.shape, *(end.hex() for end in ends)]),
        )

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file holds u with four axes, written by MATLAB or beside its times."""
        if not (h5py.is_hdf5(path) or path.suffix in (".h5", ".hdf5")):
            return len(shapes_in(path).get("u", ())) == 4
        file = Hdf5File(path)
        if "u" not in file or file.dataset("u").ndim != 4:
            return False
        square = file.dataset("u").shape[1] == file.dataset("u").shape[2]
        return "MATLAB_class" in file.dataset("u").attrs or ("t" in file and square)

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """One sample from memory."""
        if self._u is None:
            self._u = self._load()
        return self._u[index][..., frames, None]

    def _load(self) -> Array:
        read = _load_v73 if h5py.is_hdf5(self.path) else _load_v5
        return np.ascontiguousarray(read(self.path, *self._kept), dtype=np.float32)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_u": None}


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


def _load_v73(path: Path, num_samples: int | None, frames: int | None) -> npt.NDArray[Any]:
    """HDF5 written by MATLAB has its axes in reverse; a copy saved by others may not, as its times tell."""
    file = Hdf5File(path)
    shape = file.dataset("u", REAL).shape
    _check_shape(shape, path)
    times = file.dataset("t").size if "t" in file else None
    if times is not None and shape[-1] == times and shape[0] != times:
        return np.asarray(file.read("u", np.s_[:num_samples, :, :, :frames]))
    return np.asarray(file.read("u", np.s_[:frames, :, :, :num_samples])).T


def _load_v5(path: Path, num_samples: int | None, frames: int | None) -> npt.NDArray[Any]:
    u = load(path, "u")["u"]
    if u.dtype.kind not in REAL:
        raise UserError(f"{path} has u of type {u.dtype}; real numbers were expected.")
    _check_shape(u.shape, path)
    return u[:num_samples, :, :, :frames]


def _check_shape(shape: tuple[int, ...], path: Path) -> None:
    if len(shape) != 4 or shape[1] != shape[2] or 0 in shape:
        raise UserError(
            f"{path} has u of shape {shape}; (samples, n, n, frames) was expected. "
            "If it is another array, say what its axes are, for example --axes sample,time,x,y."
        )
