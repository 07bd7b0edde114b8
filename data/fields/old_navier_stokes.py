"""Files of `python -m data.navier_stokes` from before there was one format.

a    float32 (samples, x, y)           initial vorticity
u    float32 (samples, x, y, frames)   vorticity at the times t; one chunk per sample
t    float64 (frames)                  1, 2, ..., final time
"""

from pathlib import Path

import h5py
import numpy as np
import torch

from data.fields.file import OWN
from data.fields.geometry import Box
from data.fields.layout import EVERY, Array, Grid, Layout, Source
from data.hdf5 import Hdf5File


class OldNavierStokes(Source):
    """Such a file; its parameters are its attributes."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._file = path, Hdf5File(path)
        found = self._file.attributes(
            {"fingerprint": str, "first_sample": int, "num_samples": int, "resolution": int}
        )
        self.samples = range(found["first_sample"], found["first_sample"] + found["num_samples"])
        side = found["resolution"]
        times = torch.from_numpy(self._file.vector("t"))
        self._file.check("a", "float32", (len(self.samples), side, side))
        self._file.check("u", "float32", (len(self.samples), side, side, len(times)))
        self.layout = Layout(
            problem="navier-stokes",
            names=("vorticity",),
            grid=Grid.of(Box(), side),
            times=times,
            inputs=("vorticity",),
            parameters={key: value for key, value in found.items() if key not in OWN},
            fingerprint=found["fingerprint"],
        )

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file is in this format."""
        if not h5py.is_hdf5(path):
            return False
        file = Hdf5File(path)
        return "u" in file.names() and "fingerprint" in file.attribute_names()

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """One chunk of the file."""
        return np.asarray(self._file.read("u", (index, EVERY, EVERY, frames)))[..., None]

    def read_inputs(self, index: int) -> Array:
        """One chunk of the file."""
        return np.asarray(self._file.read("a", index))[..., None]
