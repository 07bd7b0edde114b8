"""The public Burgers file of the FNO authors: `burgers_data_R10.mat`, MATLAB v5, or v7.3 with the axes reversed.

    a   (samples, n)   the field at the time 0, on the unit interval, periodic
    u   (samples, n)   the field at the time 1

A map on a line, from a to u. It is read into memory once, in float32.
"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from data.fields.foreign import require_shape, stamped, times_of
from data.fields.geometry import Line
from data.fields.layout import EVERY, Array, Grid, Layout, Source
from data.fields.matlab import load, shapes_in
from data.hdf5 import REAL, Hdf5File

ARRAYS = ("a", "u")


class FnoBurgers(Source):
    """Such a file, its first samples held in memory. A process that unpickles it reads it again."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._kept = path, num_samples
        self._arrays: dict[str, Array] | None = self._load()
        shape = self._arrays["u"].shape
        require_shape(path, "a", self._arrays["a"].shape, shape)
        self.samples = range(shape[0])
        self.layout = Layout(
            problem="burgers-line",
            names=("u",),
            grid=Grid.of(Line(), shape[1]),
            times=times_of(None, 1),
            inputs=("a",),
            static=True,
        )
        self.layout = stamped(self)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file holds a and u with two axes, written by MATLAB."""
        if not h5py.is_hdf5(path):
            return [len(shapes_in(path).get(name, ())) for name in ARRAYS] == [2, 2]
        file = Hdf5File(path)
        there = [file.dataset(name) for name in ARRAYS if name in file.names()]
        return len(there) == 2 and all(each.ndim == 2 and "MATLAB_class" in each.attrs for each in there)

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """The answer."""
        return self._of("u", index)[:, None, None, None]

    def read_inputs(self, index: int) -> Array:
        """What it answers."""
        return self._of("a", index)[:, None, None]

    def _of(self, name: str, index: int) -> Array:
        if self._arrays is None:
            self._arrays = self._load()
        return self._arrays[name][index]

    def _load(self) -> dict[str, Array]:
        if h5py.is_hdf5(self.path):
            file = Hdf5File(self.path)
            found = {name: file.read(name, np.s_[:, : self._kept], REAL).T for name in ARRAYS}
        else:
            found = {name: values[: self._kept] for name, values in load(self.path, *ARRAYS).items()}
        return {name: np.ascontiguousarray(values, dtype=np.float32) for name, values in found.items()}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_arrays": None}
