"""Files of The Well: HDF5, read sample by sample.

    attributes             dataset_name, grid_type ("cartesian" or "spherical"), n_spatial_dims, n_trajectories,
                           simulation_parameters: the names of further attributes
    dimensions/            time and the axes that the attribute spatial_dims names
    boundary_conditions/   one group per condition, with the attributes associated_dims and bc_type
    t0_fields/             scalars (trajectory, time, x, y)
    t1_fields/             vectors (trajectory, time, x, y, component)
    t2_fields/             tensors (trajectory, time, x, y, component, component)
    scalars/               numbers

The groups of fields name theirs in the attribute field_names. A field lacks the axes along which it does not vary, as
its attributes sample_varying, time_varying and dim_varying say; it is repeated along them. A field that does not vary
in time, and a scalar that varies from trajectory to trajectory but not in time, is a constant. An open boundary ends
the domain like a wall.
"""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.fields.foreign import length_of, names_in, require_dimensions, require_shape, stamped, times_of
from data.fields.geometry import Box, Geometry, Sphere
from data.fields.layout import EVERY, Array, Grid, Layout, Source
from data.hdf5 import Hdf5File
from lab.errors import UserError


class TheWell(Source):
    """Such a file; components of vectors and tensors are fields of their own, `velocity_x`."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._file = path, Hdf5File(path)
        known = self._file.attributes()
        for key in ("grid_type", "n_spatial_dims", "n_trajectories"):
            if key not in known:
                raise UserError(
                    f"{path} looks like a file of The Well but has no attribute {key}; fetch it again."
                )
        if int(known["n_spatial_dims"]) != 2:
            require_dimensions(path, int(known["n_spatial_dims"]))
            raise UserError(f"{path} is a file of The Well on a line; of those, planes and spheres are read.")
        self._axes = [_text(axis) for axis in self._file.file["dimensions"].attrs["spatial_dims"]]
        require_shape(path, "spatial_dims", (len(self._axes),), (2,))
        self.samples = range(int(known["n_trajectories"]))
        rows, columns = (self._coordinate(axis) for axis in self._axes)
        times = self._coordinate("time")
        self._fields = [
            (order, _text(name))
            for order in range(3)
            if f"t{order}_fields" in self._file
            for name in self._file.file[f"t{order}_fields"].attrs["field_names"]
        ]
        self._constants = [entry for entry in self._fields if not self._varies(*entry)]
        self._fields = [entry for entry in self._fields if entry not in self._constants]
        names, constants = self._named(self._fields), self._named(self._constants)
        self._scalars = self._found_scalars()
        if not names:
            raise UserError(f"{path} names no fields in t0_fields, t1_fields or t2_fields; fetch it again.")
        parameters = {
            key: known[key]
            for key in map(_text, known.get("simulation_parameters", []))
            if isinstance(known.get(key), int | float | str)
        }
        self._south_first = False
        geometry: Geometry
        unsaid: tuple[str, ...] = ()
        if known["grid_type"] == "spherical":
            self._south_first = bool(rows[0] > rows[-1])
            colatitudes = rows[::-1].copy() if self._south_first else rows
            geometry = Sphere.of(torch.from_numpy(colatitudes))
        else:
            geometry, unsaid = self._box()
            for axis, points in zip("xy", (rows, columns), strict=True):
                parameters[f"length_{axis}"] = length_of(path, axis, points)
        self.layout = Layout(
            problem=str(known.get("dataset_name", "own")),
            names=tuple(names),
            grid=Grid.of(geometry, len(rows), len(columns)),
            times=times_of(times, len(times)),
            constants=(*constants, *self._scalars),
            parameters=parameters,
            unsaid=unsaid,
        )
        self.layout = stamped(self)

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file is in this format."""
        return {"dimensions", "t0_fields"} <= names_in(path)

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """All fields of a trajectory."""
        parts = [self._read(order, name, index, frames) for order, name in self._fields]
        return self._northern(np.concatenate(parts, axis=-1))

    def read_constants(self, index: int) -> Array:
        """All constants of a trajectory."""
        rows, columns = self.layout.grid.resolution
        parts = [self._read(order, name, index, slice(1))[..., 0, :] for order, name in self._constants]
        for name in self._scalars:
            value = np.float32(self._file.read(f"scalars/{name}", index))
            parts.append(np.full((rows, columns, 1), value, dtype=np.float32))
        return self._northern(np.concatenate(parts, axis=-1))

    def _northern(self, values: Array) -> Array:
        return np.flip(values, 0) if self._south_first else values

    def _varies(self, order: int, name: str) -> bool:
        """Whether a field changes with time."""
        return bool(self._file.dataset(f"t{order}_fields/{name}").attrs.get("time_varying", True))

    def _found_scalars(self) -> list[str]:
        """Numbers that trajectories differ in."""
        about = self._file.file.get("scalars")
        names = [] if about is None else [_text(name) for name in about.attrs.get("field_names", [])]
        varying = {"sample_varying": True, "time_varying": False}
        return [
            name
            for name in names
            if all(bool(about[name].attrs.get(key, False)) == value for key, value in varying.items())
            and about[name].shape == (len(self.samples),)
        ]

    def _named(self, entries: list[tuple[int, str]]) -> list[str]:
        """The components of fields by name."""
        return [
            "_".join([name, "".join(axes)]) if axes else name
            for order, name in entries
            for axes in product(self._axes, repeat=order)
        ]

    def _read(self, order: int, name: str, index: int, chosen: slice) -> Array:
        """Some frames of a field of a trajectory as (row, column, frame, component)."""
        path = f"t{order}_fields/{name}"
        about = self._file.dataset(path).attrs
        varies = [bool(about.get("time_varying", True)), *map(bool, about.get("dim_varying", (True, True)))]
        which = ((index,) if about.get("sample_varying", True) else ()) + ((chosen,) if varies[0] else ())
        values = np.asarray(self._file.read(path, which))
        rows, columns, frames, _ = self.layout.shape
        full = (len(range(frames)[chosen]), rows, columns, *(2,) * order)
        there = [n for n, kept in zip(full[:3], varies, strict=True) if kept]
        require_shape(self.path, path, values.shape, (*there, *full[3:]))
        shape = [n if kept else 1 for n, kept in zip(full[:3], varies, strict=True)]
        whole = np.broadcast_to(values.reshape(*shape, *full[3:]), full).reshape(*full[:3], -1)
        return np.moveaxis(whole, 0, 2).astype(np.float32)

    def _coordinate(self, axis: str) -> Any:
        points = np.asarray(self._file.read(f"dimensions/{axis}"), dtype=np.float64)
        return points[0] if points.ndim == 2 else points

    def _box(self) -> tuple[Box, tuple[str, ...]]:
        """The boundary of each axis, and the axes of which none is told."""
        found: dict[str, Any] = {}
        for condition in self._file.file.get("boundary_conditions", {}).values():
            kind = _text(condition.attrs["bc_type"]).lower()
            for axis in np.atleast_1d(condition.attrs["associated_dims"]):
                found.setdefault(_text(axis), "periodic" if kind == "periodic" else "walls")
        rows, columns = (found.get(axis, "walls") for axis in self._axes)
        unsaid = (place for place, axis in zip("xy", self._axes, strict=True) if axis not in found)
        return Box(rows, columns), tuple(unsaid)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
