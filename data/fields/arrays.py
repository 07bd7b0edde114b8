"""Plain arrays: `.npy`, `.npz`, MATLAB, and any HDF5 file, NetCDF-4 among them.

Arrays with three axes or more are fields, all of them on one grid. Unless names say otherwise, their axes are:

    trajectories   (sample, time, x, y) or (sample, time, x, y, field)
    maps           (sample, x, y) or (sample, x, y, field), of two arrays with the names of a pair in PAIRS

Names say otherwise where an HDF5 file labels its axes (h5py's `dims`, the dimensions of NetCDF) with words of `AXES`,
or where a user tells the order. Arrays with one axis and a name of `AXES` are coordinates. A shape that could as well
have another order than the documented one is refused.

HDF5 and `.npy` are read sample by sample; the others are read into memory once.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np

from data.fields import matlab
from data.fields.foreign import length_of, require_shape, require_two_dimensions, stamped, times_of
from data.fields.geometry import Box
from data.fields.layout import Array, Grid, Layout
from data.fields.options import Told, words
from data.hdf5 import Hdf5File
from lab.errors import UserError

AXES = {
    "sample": ("sample", "samples", "batch", "trajectory", "member", "n"),
    "time": ("time", "times", "t", "frame", "frames"),
    "x": ("x", "row", "rows"),
    "y": ("y", "column", "columns"),
    "field": ("field", "fields", "channel", "channels", "component", "variable"),
}
"""An axis, and the names that it goes by."""

PAIRS = (("inputs", "outputs"), ("input", "output"), ("a", "u"), ("coeff", "sol"), ("x", "y"))
"""Names of a map's two arrays: what is given, and its answer."""

ORDERS = {
    False: {4: ("sample", "time", "x", "y"), 5: ("sample", "time", "x", "y", "field")},
    True: {3: ("sample", "x", "y"), 4: ("sample", "x", "y", "field")},
}
"""The documented order by number of axes, of trajectories and of maps."""

SMALLEST = 4
"""Points along x and y that a grid has at least."""


class AnyArray(Protocol):
    """What numpy and `_Stored` have in common."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, index: Any) -> Any: ...


class _Stored:
    """An array of an HDF5 file, read when it is indexed."""

    def __init__(self, file: Hdf5File, name: str) -> None:
        self._file, self._name, self.shape = file, name, file.dataset(name).shape

    def __getitem__(self, index: Any) -> Any:
        return self._file.read(self._name, index)


class PlainArrays:
    """The arrays of a file as fields, with what the user tells of them. A process that unpickles it opens it again."""

    def __init__(self, path: Path, told: Told) -> None:
        self.path = path
        self._arrays: Mapping[str, AnyArray] | None = _opened(path)
        coordinates = {
            axis: np.asarray(array[()])
            for axis, aliases in AXES.items()
            for name, array in self._arrays.items()
            if len(array.shape) == 1 and name.lower() in aliases
        }
        shapes = {name: array.shape for name, array in self._arrays.items() if len(array.shape) > 1}
        chosen = words(told.fields) or [name for name, shape in shapes.items() if len(shape) > 2]
        for name in chosen:
            if name not in shapes:
                raise UserError(f"{path} has no array {name!r} of fields; it holds {_listed(self._arrays)}.")
        if not chosen:
            require_two_dimensions(path, 1 if shapes else 2)
            raise UserError(
                f"{path} holds no array of fields, (sample, time, x, y) for example, but {_listed(self._arrays)}."
            )
        pair = next((pair for pair in PAIRS if set(chosen) == set(pair)), None)
        labels = {name: _labels(path, name) for name in chosen}
        self._order = {
            name: self._axes(name, shapes[name], labels[name], words(told.axes), pair is not None)
            for name in chosen
        }
        static = pair is not None and all("time" not in order for order in self._order.values())
        self._solution = [pair[1]] if static and pair else chosen
        self._inputs = [pair[0]] if static and pair else []
        sizes = {name: dict(zip(self._order[name], shapes[name], strict=True)) for name in chosen}
        first = sizes[chosen[0]]
        for name in chosen[1:]:
            shared = [axis for axis in self._order[name] if axis != "field"]
            wanted = tuple(first.get(axis, 1) for axis in shared)
            require_shape(
                path, f"{name} without its fields", tuple(sizes[name][axis] for axis in shared), wanted
            )
        for axis, points in coordinates.items():
            if axis in ("time", "x", "y"):
                require_shape(path, f"coordinate {axis}", points.shape, (first.get(axis, 1),))
        self.samples = range(first["sample"])
        self.layout = Layout(
            problem="own",
            names=_field_names(self._solution, sizes),
            grid=Grid.of(Box("walls", "walls"), first["x"], first["y"]),
            times=times_of(coordinates.get("time"), first.get("time", 1)),
            inputs=_field_names(self._inputs, sizes),
            static=static,
            parameters={
                f"length_{axis}": length_of(path, axis, coordinates[axis])
                for axis in "xy"
                if axis in coordinates
            },
            unsaid=("x", "y"),
        )
        self.layout = stamped(self)

    def read(self, index: int) -> Array:
        """All fields of a sample."""
        return self._read(self._solution, index)

    def read_inputs(self, index: int) -> Array:
        """The input of a map."""
        return self._read(self._inputs, index)[..., 0, :]

    def _read(self, names: Sequence[str], index: int) -> Array:
        if self._arrays is None:
            self._arrays = _opened(self.path)
        return np.concatenate(
            [self._sample(self._arrays[name], self._order[name], index) for name in names], -1
        )

    def _sample(self, array: AnyArray, order: Sequence[str], index: int) -> Array:
        """A sample of an array as (row, column, frame, field)."""
        values = np.asarray(array[tuple(index if axis == "sample" else slice(None) for axis in order)])
        left = [axis for axis in order if axis != "sample"]
        missing = [axis for axis in ("time", "field") if axis not in left]
        values = values.reshape(*values.shape, *(1 for _ in missing))
        left += missing
        return values.transpose([left.index(axis) for axis in ("x", "y", "time", "field")]).astype(np.float32)

    def _axes(
        self, name: str, shape: tuple[int, ...], labels: Sequence[str], told: Sequence[str], static: bool
    ) -> tuple[str, ...]:
        """The axes of an array: as told, as labelled, or as documented if the shape agrees."""
        named = [_axis(self.path, word) for word in told] or [_axis(self.path, word) for word in labels]
        if named:
            if (
                len(named) != len(shape)
                or len(set(named)) != len(named)
                or not {"sample", "x", "y"} <= set(named)
            ):
                raise UserError(
                    f"{self.path}: the axes {', '.join(named)} do not fit {name!r} of shape {shape}; name each axis "
                    "once with --axes, among them sample, x and y."
                )
            return tuple(named)
        order = ORDERS[static].get(len(shape))
        if order is None:
            wanted = " or ".join(f"({', '.join(each)})" for each in ORDERS[static].values())
            raise UserError(
                f"{self.path}: {name!r} has the shape {shape} where {wanted} was expected; say what its axes are, for "
                "example --axes sample,x,y,time, leave it out with --fields, or name the two arrays of a map inputs "
                "and outputs."
            )
        rows, columns = (shape[order.index(axis)] for axis in "xy")
        if len(shape) == 5 and shape[4] >= SMALLEST and shape[4] == columns:
            require_two_dimensions(self.path, 3)
        equal = {(i, i + 1) for i in range(1, len(shape) - 1) if shape[i] == shape[i + 1] >= SMALLEST}
        taken = (order.index("x"), order.index("y"))
        if min(rows, columns) < SMALLEST or equal - {taken}:
            raise UserError(
                f"{self.path}: {name!r} of shape {shape} may not be ({', '.join(order)}), as is the rule here; say "
                f"what its axes are, for example --axes {','.join(order)} or --axes sample,x,y,time."
            )
        return order

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_arrays": None}


def _opened(path: Path) -> Mapping[str, AnyArray]:
    """The arrays of a file by name."""
    if h5py.is_hdf5(path):
        file, names = Hdf5File(path), list[str]()
        file.file.visititems(
            lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
        )
        return {name: _Stored(file, name) for name in names if file.dataset(name).dtype.kind in "fiu"}
    if matlab.is_matlab(path):
        return matlab.load(path, *matlab.shapes_in(path))
    if path.suffix not in (".npy", ".npz"):
        raise UserError(
            f"{path} is not a file of fields in a format that is known here; docs/data.md lists the formats, and "
            "python -m data.darcy, for example, makes such a file."
        )
    try:
        if path.suffix == ".npy":
            return {path.stem: np.load(path, mmap_mode="r")}
        with path.open("rb") as stream, np.load(stream) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:  # a damaged zip archive or header raises many kinds
        raise UserError(
            f"{path} cannot be read as a numpy file ({str(error).splitlines()[0]}); it is truncated or holds objects: "
            "save plain arrays again."
        ) from error


def _labels(path: Path, name: str) -> list[str]:
    """How an HDF5 file labels the axes of an array; nothing unless it labels all of them."""
    return Hdf5File(path).axis_names(name) if h5py.is_hdf5(path) else []


def _axis(path: Path, word: str) -> str:
    for axis, aliases in AXES.items():
        if word.lower() in aliases:
            return axis
    if word.lower() == "z":
        require_two_dimensions(path, 3)
    raise UserError(f"{path}: an axis {word!r} is not known; give --axes with the words {', '.join(AXES)}.")


def _field_names(arrays: Sequence[str], sizes: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """An array of one field has its name; the fields of another are numbered from 0."""
    return tuple(
        f"{name}{i}" if sizes[name].get("field", 1) > 1 else name
        for name in arrays
        for i in range(sizes[name].get("field", 1))
    )


def _listed(arrays: Mapping[str, AnyArray]) -> str:
    return ", ".join(f"{name} {tuple(array.shape)}" for name, array in arrays.items()) or "nothing"
