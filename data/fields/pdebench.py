"""Files of PDEBench, HDF5, in its three two-dimensional layouts. All are read sample by sample.

    compressible flow     density, pressure, Vx, Vy (samples, t, x, y); x-, y- and t-coordinate
    Darcy flow            nu (samples, x, y), the permeability; tensor (samples, 1, x, y), the pressure
    diffusion-reaction    one group per sample, "0000", "0001", ...: data (t, x, y, channel); grid/x, grid/y, grid/t
    and shallow water

Only the name of a file of compressible flow tells its boundary (`..._periodic_...`). The other equations have walls:
the pressure of Darcy flow is zero there, and nothing flows through those of the others. Points are middles of cells.
"""

import re
from pathlib import Path

import h5py
import numpy as np

from data.fields.foreign import (
    length_of,
    names_in,
    require_shape,
    require_two_dimensions,
    stamped,
    times_of,
)
from data.fields.geometry import Box
from data.fields.layout import Array, Grid, Layout
from data.hdf5 import Hdf5File
from lab.errors import UserError

FLOW = ("density", "pressure", "Vx", "Vy")
CHANNELS = {1: ("dam-break", ("height",)), 2: ("diffusion-reaction", ("activator", "inhibitor"))}
"""Equation and fields of the files with a group per sample, by the number of their channels."""
WALLS = Box("walls", "walls")


class PdeBenchFlow:
    """Compressible flow."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._file = path, Hdf5File(path)
        require_two_dimensions(path, sum(name in self._file for name in ("Vx", "Vy", "Vz")))
        shape = self._file.dataset("density").shape
        if len(shape) != 4:
            raise UserError(f"{path}: 'density' has the shape {shape}; (samples, t, x, y) was expected.")
        for name in FLOW:
            require_shape(path, name, self._file.dataset(name).shape, shape)
        samples, count, rows, columns = shape
        self.samples = range(samples)
        lengths = {}
        for axis, points in (("x", rows), ("y", columns)):
            if f"{axis}-coordinate" in self._file:
                found = self._file.read(f"{axis}-coordinate")
                require_shape(path, f"{axis}-coordinate", found.shape, (points,))
                lengths[f"length_{axis}"] = length_of(path, axis, found)
        times = self._file.read("t-coordinate") if "t-coordinate" in self._file else None
        periodic = "periodic" in path.name.lower()
        self.layout = Layout(
            problem="compressible-flow",
            names=FLOW,
            grid=Grid.of(Box() if periodic else WALLS, rows, columns),
            times=times_of(times, count),
            parameters=lengths,
            unsaid=() if periodic else ("x", "y"),
        )
        self.layout = stamped(self)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file is in this format, in any number of dimensions."""
        return {"density", "pressure", "Vx"} <= names_in(path)

    def read(self, index: int) -> Array:
        """Four reads, one per field."""
        fields = [np.moveaxis(self._file.read(name, index), 0, -1) for name in FLOW]
        return np.stack(fields, axis=-1).astype(np.float32)

    def read_inputs(self, index: int) -> Array:
        """There are none."""
        raise NotImplementedError


class PdeBenchDarcy:
    """Darcy flow; refuses the one-dimensional equations, whose solution is called tensor, too."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._file = path, Hdf5File(path)
        solution = self._file.dataset("tensor").shape
        if "nu" not in self._file:
            require_two_dimensions(path, _axes(self._file))
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
        """Whether the file is in this format or in its one-dimensional relative."""
        names = names_in(path)
        return "tensor" in names and bool(names & {"nu", "x-coordinate"})

    def read(self, index: int) -> Array:
        """The pressure, its one frame last."""
        pressure: Array = np.moveaxis(self._file.read("tensor", index), 0, -1)[..., None].astype(np.float32)
        return pressure

    def read_inputs(self, index: int) -> Array:
        """The permeability."""
        permeability: Array = self._file.read("nu", index)[..., None].astype(np.float32)
        return permeability


class PdeBenchGroups:
    """Diffusion-reaction and shallow water: one group per sample."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._file = path, Hdf5File(path)
        self._groups = sorted(name for name in self._file.file if _is_sample(name))
        self.samples = range(len(self._groups))
        first = self._groups[0]
        shape = self._file.dataset(f"{first}/data").shape
        require_two_dimensions(path, len(shape) - 2)
        count, rows, columns, channels = shape
        problem, names = CHANNELS.get(channels, ("own", tuple(f"field {i}" for i in range(channels))))
        coordinates = {axis: self._coordinate(first, axis) for axis in "xyt"}
        lengths = {
            f"length_{axis}": length_of(path, axis, points)
            for axis in "xy"
            if (points := coordinates[axis]) is not None
        }
        self.layout = Layout(
            problem=problem,
            names=names,
            grid=Grid.of(WALLS, rows, columns),
            times=times_of(coordinates["t"], count),
            parameters=lengths,
        )
        self.layout = stamped(self)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether all groups at the root have the number of a sample for their name, and hold `data`."""
        names = names_in(path)
        if not names or not all(_is_sample(name) for name in names):
            return False
        return isinstance(Hdf5File(path).file[f"{min(names)}/data"], h5py.Dataset)

    def _coordinate(self, group: str, axis: str) -> Array | None:
        name = f"{group}/grid/{axis}"
        return np.asarray(self._file.read(name)) if name in self._file else None

    def read(self, index: int) -> Array:
        """The group of the sample."""
        rows, columns, frames, channels = self.layout.shape
        name = f"{self._groups[index]}/data"
        require_shape(self.path, name, self._file.dataset(name).shape, (frames, rows, columns, channels))
        return np.moveaxis(self._file.read(name), 0, 2).astype(np.float32)

    def read_inputs(self, index: int) -> Array:
        """There are none."""
        raise NotImplementedError


def _is_sample(name: str) -> bool:
    return re.fullmatch(r"\d{4,}", name) is not None


def _axes(file: Hdf5File) -> int:
    """The space dimensions of a file, by its coordinates."""
    return sum(f"{axis}-coordinate" in file for axis in "xyz")
