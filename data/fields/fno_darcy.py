"""The public Darcy files of the FNO authors: MATLAB v5, `piececonst_r421_N1024_smooth1.mat` and its like.

    coeff   (samples, n, n)   permeability
    sol     (samples, n, n)   pressure

The first and the last point of each axis lie on the walls. MATLAB's order spreads a sample over the whole file, so
that it is read into memory once.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.fields.foreign import require_shape, stamped, times_of
from data.fields.geometry import Box
from data.fields.layout import EVERY, Array, Grid, Layout, Source
from data.fields.matlab import load, shapes_in
from lab.errors import UserError


class FnoDarcy(Source):
    """Such a file, its first samples held in memory. A process that unpickles it reads it again."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._kept = path, num_samples
        self._arrays: tuple[Array, Array] | None = self._load()
        coeff, sol = self._arrays
        if coeff.ndim != 3:
            raise UserError(f"{path} has coeff of shape {coeff.shape}; (samples, n, n) was expected.")
        require_shape(path, "sol", sol.shape, coeff.shape)
        self.samples = range(len(sol))
        rows, columns = (torch.linspace(0, 1, n, dtype=torch.float64) for n in sol.shape[1:])
        self.layout = Layout(
            problem="darcy",
            names=("pressure",),
            grid=Grid(Box("walls", "walls"), rows, columns),
            times=times_of(None, 1),
            inputs=("permeability",),
            static=True,
        )
        self.layout = stamped(self)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file is in this format."""
        return {"coeff", "sol"} <= set(shapes_in(path))

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """The pressure."""
        return self._held[1][index][..., None, None]

    def read_inputs(self, index: int) -> Array:
        """The permeability."""
        return self._held[0][index][..., None]

    @property
    def _held(self) -> tuple[Array, Array]:
        if self._arrays is None:
            self._arrays = self._load()
        return self._arrays

    def _load(self) -> tuple[Array, Array]:
        found = load(self.path, "coeff", "sol")
        coeff, sol = (
            np.ascontiguousarray(found[name][: self._kept], dtype=np.float32) for name in ("coeff", "sol")
        )
        return coeff, sol

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_arrays": None}
