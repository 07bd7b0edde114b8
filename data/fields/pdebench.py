"""Files of PDEBench, HDF5, in their layouts on lines and in planes. All are read sample by sample.

    compressible flow     density, pressure, Vx (samples, t, x), in a plane also Vy, all (samples, t, x, y); x-, y- and
                          t-coordinate
    scalar equations      tensor (samples, t, x); x- and t-coordinate: advection, Burgers, reaction-diffusion
    Darcy flow            nu (samples, x, y), the permeability; tensor (samples, 1, x, y), the pressure
    diffusion-reaction,   one group per sample, "0000", "0001", ...: data (t, x, y, channel), on a line (t, x, channel);
    shallow water and     grid/x, grid/y, grid/t
    diffusion-sorption

Only the name of a file tells the boundary of compressible flow (`..._periodic_...`) and of a scalar equation, which
PDEBench solves on a circle. The other equations have walls: the pressure of Darcy flow is zero there, and nothing flows
through those of the others. Points are middles of cells.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from data.fields.foreign import length_of, names_in, require_dimensions, require_shape, stamped, times_of
from data.fields.geometry import Box, Geometry, Line
from data.fields.layout import EVERY, Array, Grid, Layout, Source
from data.hdf5 import Hdf5File
from lab.errors import UserError

CIRCLES = {"advection": "advection", "burgers": "burgers-line", "reacdiff": "reaction-diffusion"}
"""Words in the names of files whose equation is periodic, and the equation."""
CHANNELS = {
    (2, 1): ("dam-break", ("height",)),
    (2, 2): ("diffusion-reaction", ("activator", "inhibitor")),
    (1, 1): ("diffusion-sorption", ("concentration",)),
}
"""Equation and fields of the files with a group per sample, by their dimensions and the number of their channels."""
WALLS = Box("walls", "walls")


class PdeBenchFlow(Source):
    """Compressible flow, or a scalar equation on a line: one array (samples, t, x) or (samples, t, x, y) per field."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._file = path, Hdf5File(path)
        flow = "density" in self._file
        axes = [axis for axis in "xyz" if (f"V{axis}" if flow else f"{axis}-coordinate") in self._file]
        require_dimensions(path, len(axes))
        self._arrays = ["density", "pressure", *(f"V{axis}" for axis in axes)] if flow else ["tensor"]
        shape = self._file.dataset(self._arrays[0]).shape
        if len(shape) != 2 + len(axes):
            wanted = ", ".join(("samples", "t", *axes))
            raise UserError(f"{path}: {self._arrays[0]!r} has the shape {shape}; ({wanted}) was expected.")
        for name in self._arrays:
            require_shape(path, name, self._file.dataset(name).shape, shape)
        self.samples = range(shape[0])
        coordinates = {
            axis: self._file.read(f"{axis}-coordinate")
            for axis in (*axes, "t")
            if f"{axis}-coordinate" in self._file
        }
        known = next((word for word in CIRCLES if word in path.name.lower()), None)
        periodic = "periodic" in path.name.lower() or (not flow and known is not None)
        self.layout = Layout(
            problem="compressible-flow" if flow else CIRCLES.get(known or "", "own"),
            names=tuple(self._arrays) if flow else ("u",),
            grid=Grid.of(_geometry(len(axes), periodic), *shape[2:]),
            times=times_of(coordinates.pop("t", None), shape[1]),
            parameters=_lengths(path, coordinates, shape[2:]),
            unsaid=() if periodic else tuple(axes),
        )
        self.layout = stamped(self)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file is in this format, in any number of dimensions."""
        names = names_in(path)
        return {"density", "pressure", "Vx"} <= names or (
            {"tensor", "x-coordinate"} <= names and "nu" not in names
        )

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """One read per field."""
        rows, columns = self.layout.grid.resolution
        fields = [self._file.read(name, (index, frames)).reshape(-1, rows, columns) for name in self._arrays]
        return np.moveaxis(np.stack(fields, axis=-1), 0, 2).astype(np.float32)


class PdeBenchDarcy(Source):
    """Darcy flow."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._file = path, Hdf5File(path)
        solution = self._file.dataset("tensor").shape
        if len(solution) != 4 or solution[1] != 1:
            raise UserError(f"{path}: 'tensor' has the shape {solution}; (samples, 1, x, y) was expected.")
        samples, _, rows, columns = solution
        require_shape(path, "nu", self._file.dataset("nu").shape, (samples, rows, columns))
        self.samples = range(samples)
        beta = self._file.file.attrs.get("beta")
        self.layout = Layout(
            problem="darcy",
            names=("pressure",),
            grid=Grid.of(WALLS, rows, columns),
            times=times_of(None, 1),
            inputs=("permeability",),
            static=True,
            parameters={} if beta is None else {"beta": float(beta)},
        )
        self.layout = stamped(self)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file is in this format."""
        return {"tensor", "nu"} <= names_in(path)

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """The pressure, its one frame last."""
        pressure: Array = np.moveaxis(self._file.read("tensor", index), 0, -1)[..., None].astype(np.float32)
        return pressure

    def read_inputs(self, index: int) -> Array:
        """The permeability."""
        permeability: Array = self._file.read("nu", index)[..., None].astype(np.float32)
        return permeability


class PdeBenchGroups(Source):
    """Diffusion-reaction, shallow water and diffusion-sorption: one group per sample."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._file = path, Hdf5File(path)
        self._groups = sorted(name for name in self._file.file if _is_sample(name))
        self.samples = range(len(self._groups))
        first = self._groups[0]
        self._shape = self._file.dataset(f"{first}/data").shape
        count, *points, channels = self._shape
        require_dimensions(path, len(points))
        numbered = tuple(f"field {i}" for i in range(channels))
        problem, names = CHANNELS.get((len(points), channels), ("own", numbered))
        coordinates = {
            axis: np.asarray(self._file.read(name))
            for axis in (*"xy"[: len(points)], "t")
            if (name := f"{first}/grid/{axis}") in self._file
        }
        self.layout = Layout(
            problem=problem,
            names=names,
            grid=Grid.of(_geometry(len(points), periodic=False), *points),
            times=times_of(coordinates.pop("t", None), count),
            parameters=_lengths(path, coordinates, points),
        )
        self.layout = stamped(self)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether all groups at the root have the number of a sample for their name, and hold `data`."""
        names = names_in(path)
        if not names or not all(_is_sample(name) for name in names):
            return False
        return isinstance(Hdf5File(path).file[f"{min(names)}/data"], h5py.Dataset)

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """The group of the sample."""
        rows, columns, _, channels = self.layout.shape
        name = f"{self._groups[index]}/data"
        require_shape(self.path, name, self._file.dataset(name).shape, self._shape)
        values = self._file.read(name, frames).reshape(-1, rows, columns, channels)
        return np.moveaxis(values, 0, 2).astype(np.float32)


def _geometry(dimensions: int, periodic: bool) -> Geometry:
    if dimensions == 1:
        return Line("periodic" if periodic else "walls")
    return Box() if periodic else WALLS


def _lengths(path: Path, coordinates: dict[str, Array], points: Sequence[int]) -> dict[str, float]:
    """The lengths of the axes whose coordinates are there."""
    for (axis, found), n in zip(coordinates.items(), points, strict=False):
        require_shape(path, f"{axis}-coordinate", found.shape, (n,))
    return {f"length_{axis}": length_of(path, axis, found) for axis, found in coordinates.items()}


def _is_sample(name: str) -> bool:
    return re.fullmatch(r"\d{4,}", name) is not None
