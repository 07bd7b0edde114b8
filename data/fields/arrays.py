"""Plain arrays: `.npy`, `.npz`, MATLAB, HDF5, NetCDF and Zarr (`containers`), and what is fields among them.

Unless names say otherwise, the axes of arrays are:

    trajectories   in a plane (sample, time, x, y) or (sample, time, x, y, field); on a line (sample, time, x)
    maps           in a plane (sample, x, y) or (sample, x, y, field); on a line (sample, x) or (sample, x, field);
                   of two arrays with the names of a pair in PAIRS
    constants      beside either: (sample, x, y), (sample, x, y, field) or (x, y), on a line (sample, x); and numbers
                   (sample), if they are floating-point ones

Names say otherwise where a file labels its axes (h5py's `dims`, the dimensions of NetCDF and Zarr) by words of `AXES`,
or where a user tells the order. Arrays with one axis and a name of `AXES` are coordinates; a number without an axis is
a parameter, and `dt` the time between frames. A shape that could as well have another order than the documented one is
refused. A file may have attributes called periodic, walls, sphere, units and keeps, with what the flags of these names
would tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from data.fields.containers import NamedArray, open_arrays
from data.fields.foreign import length_of, require_dimensions, require_shape, stamped, times_of
from data.fields.geometry import Box, Latitudes, Line, Sphere
from data.fields.layout import EVERY, Array, Grid, Layout, Source
from data.fields.options import Told, words
from data.fields.told import is_symmetry, retold, symmetry_of
from lab.errors import UserError

AXES = {
    "sample": ("sample", "samples", "batch", "trajectory", "member", "n"),
    "time": ("time", "times", "t", "frame", "frames"),
    "x": ("x", "row", "rows", "lat", "latitude"),
    "y": ("y", "column", "columns", "lon", "longitude"),
    "field": ("field", "fields", "channel", "channels", "component", "variable"),
}
"""An axis, and the names that it goes by."""
LATITUDES = ("lat", "latitude")

PAIRS = (("inputs", "outputs"), ("input", "output"), ("a", "u"), ("coeff", "sol"), ("x", "y"))
"""Names of a map's two arrays: what is given, and its answer."""

TRAJECTORIES = {
    3: ("sample", "time", "x"),
    4: ("sample", "time", "x", "y"),
    5: ("sample", "time", "x", "y", "field"),
}
MAPS = {2: ("sample", "x"), 3: ("sample", "x", "y"), 4: ("sample", "x", "y", "field")}
"""The documented order by number of axes; of the two arrays of a map, that of the one with fewer."""

SMALLEST = 4
"""Points along x and y that a grid has at least."""

Order = tuple[str, ...]


class PlainArrays(Source):
    """The arrays of a file as fields, with what the user tells of them. A process that unpickles it opens it again."""

    def __init__(self, path: Path, told: Told) -> None:
        self.path = path
        arrays, attributes = open_arrays(path)
        self._arrays: Mapping[str, NamedArray] | None = arrays
        named = words(told.fields)
        for name in named:
            if name not in arrays or not arrays[name].shape:
                raise UserError(f"{path} has no array {name!r} of fields; it holds {_listed(arrays)}.")
        coordinates = {
            axis: (np.asarray(array[()]), array.unit)
            for axis, aliases in AXES.items()
            for name, array in arrays.items()
            if axis not in ("sample", "field") and len(array.shape) == 1 and name.lower() in aliases
        }
        large = [name for name in named or arrays if len(arrays[name].shape) > 1]
        pair = _pair(large, arrays)
        self._order = self._orders(large, arrays, words(told.axes), pair, bool(named))
        moving = [name for name in self._order if "time" in self._order[name]]
        static = pair is not None and not moving
        self._solution = [pair[1]] if static and pair else (moving or list(self._order))
        first = self._sizes(self._solution[0], arrays)
        numbers = [
            name
            for name, array in arrays.items()
            if array.shape == (first["sample"],)
            and (name in named or (array.kind == "f" and not named))
            and not any(name.lower() in aliases for aliases in AXES.values())
        ]
        self._order |= dict.fromkeys(numbers, ("sample",))
        for name in self._order:
            if arrays[name].kind == "c":
                raise UserError(
                    f"{path}: {name!r} holds complex numbers, and fields are real; save its real and its imaginary "
                    "part as two arrays, or leave it out with --fields."
                )
        self._given = [name for name in self._order if name not in self._solution]
        if static and pair:  # its input comes first
            self._given = [pair[0], *(name for name in self._given if name != pair[0])]
        for axis, (points, _) in coordinates.items():
            require_shape(path, f"coordinate {axis}", points.shape, (first.get(axis, 1),))
        self.samples = range(first["sample"])
        constants = () if static else self._names(self._given, arrays)
        numbers_alone = {name: float(each[()]) for name, each in arrays.items() if each.shape == ()}
        step = numbers_alone.pop("dt", None)
        times = times_of(coordinates["time"][0] if "time" in coordinates else None, first.get("time", 1))
        # NetCDF counts time from a date, "hours since 1979-01-01", of which only the hours are a unit.
        units = {axis: unit.partition(" since ")[0] for axis, (_, unit) in coordinates.items() if unit}
        for name in self._order:
            if arrays[name].unit:
                units |= dict.fromkeys(self._names([name], arrays), arrays[name].unit)
        plane = "y" in first
        self.layout = Layout(
            problem="own",
            names=self._names(self._solution, arrays),
            grid=Grid.of(Box("walls", "walls") if plane else Line("walls"), first["x"], first.get("y", 1)),
            times=times if step is None or "time" in coordinates else times * step,
            inputs=self._names(self._given, arrays) if static else (),
            static=static,
            constants=constants,
            units=units,
            parameters=numbers_alone
            | {
                f"length_{axis}": length_of(path, axis, coordinates[axis][0])
                for axis in "xy"
                if axis in coordinates
            },
            unsaid=("x", "y") if plane else ("x",),
        )
        self.layout = _with_attributes(stamped(self), attributes, told, path)
        kind = told.sphere or (None if told.boundaries else self.layout.grid.geometry.latitudes)
        for name, array in arrays.items():
            if kind is not None and name.lower() in LATITUDES and array.shape == (first["x"],):
                _check_latitudes(path, np.asarray(array[()], dtype=np.float64), kind)

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """All fields of a sample."""
        return self._read(self._solution, index, frames)

    def read_inputs(self, index: int) -> Array:
        """The input of a map, and its constants."""
        return self._read(self._given, index, EVERY)[..., 0, :]

    def read_constants(self, index: int) -> Array:
        """The constants of a trajectory."""
        return self._read(self._given, index, EVERY)[..., 0, :]

    def _read(self, names: Sequence[str], index: int, frames: slice) -> Array:
        if self._arrays is None:
            self._arrays, _ = open_arrays(self.path)
        parts = [self._sample(self._arrays[name], self._order[name], index, frames) for name in names]
        return np.concatenate(parts, -1)

    def _sample(self, array: NamedArray, order: Order, index: int, frames: slice) -> Array:
        """A sample of an array as (row, column, frame, field)."""
        chosen = {"sample": index, "time": frames}
        values = np.asarray(array[tuple(chosen.get(axis, EVERY) for axis in order)])
        left = [axis for axis in order if axis != "sample"]
        missing = [axis for axis in ("x", "y", "time", "field") if axis not in left]
        values = values.reshape(*values.shape, *(1 for _ in missing))
        left += missing
        values = values.transpose([left.index(axis) for axis in ("x", "y", "time", "field")])
        return np.broadcast_to(values, (*self.layout.grid.resolution, *values.shape[2:])).astype(np.float32)

    def _orders(
        self,
        names: Sequence[str],
        arrays: Mapping[str, NamedArray],
        told: Sequence[str],
        pair: tuple[str, str] | None,
        chosen: bool,
    ) -> dict[str, Order]:
        """The axes of each array: as told, as labelled, or as documented if the shapes agree."""
        found: dict[str, Order] = {}
        plain = []
        for name in names:
            shape, labels = arrays[name].shape, list(told) or list(arrays[name].labels)
            if told and len(shape) == len(told) - 1:
                labels = [word for word in told if _axis(self.path, word) != "time"]
            if not labels:
                plain.append(name)
            elif chosen or len(shape) > 2 or {_known(word) for word in labels} >= {"x"}:
                found[name] = self._labelled(name, shape, labels)
        if not found:
            usual = MAPS if pair else TRAJECTORIES
            among = [name for name in plain if pair is None or name in pair]
            count = [len(arrays[name].shape) for name in among]
            ranked = sorted(among, key=lambda name: len(arrays[name].shape), reverse=pair is None)
            if not ranked or (pair is None and max(count) < 3):
                raise UserError(
                    f"{self.path} holds no array of fields, (sample, time, x, y) for example, but "
                    f"{_listed(arrays)}; two arrays of a map are called inputs and outputs."
                )
            first = ranked[0]
            found[first] = self._documented(first, arrays[first].shape, usual)
        reference = next(iter(found))
        sizes = self._sizes(reference, arrays, found[reference])
        for name in plain:
            if name not in found and not (len(arrays[name].shape) == 2 and _known(name)):
                fitting = _fitting(arrays[name].shape, sizes)
                if fitting is None and (chosen or len(arrays[name].shape) > 2):
                    wanted = tuple(size for axis, size in sizes.items() if axis != "field")
                    require_shape(self.path, name, arrays[name].shape, wanted)
                elif fitting is not None:
                    found[name] = fitting
        for name in found:
            here = self._sizes(name, arrays, found[name])
            there = {axis: size for axis, size in here.items() if axis != "field"}
            wanted_sizes = {axis: sizes.get(axis, size) for axis, size in there.items()}
            require_shape(
                self.path, f"{name} without its fields", tuple(there.values()), tuple(wanted_sizes.values())
            )
        return {name: found[name] for name in names if name in found}

    def _labelled(self, name: str, shape: tuple[int, ...], labels: Sequence[str]) -> Order:
        named = [_axis(self.path, word) for word in labels]
        if len(named) != len(shape) or len(set(named)) != len(named) or not {"sample", "x"} <= set(named):
            raise UserError(
                f"{self.path}: the axes {', '.join(named)} do not fit {name!r} of shape {shape}; name each axis "
                "once with --axes, among them sample and x, and y in a plane."
            )
        return tuple(named)

    def _documented(self, name: str, shape: tuple[int, ...], usual: Mapping[int, Order]) -> Order:
        order = usual.get(len(shape))
        if order is None:
            wanted = " or ".join(f"({', '.join(each)})" for each in usual.values())
            raise UserError(
                f"{self.path}: {name!r} has the shape {shape} where {wanted} was expected; say what its axes are, for "
                "example --axes sample,x,y,time, leave it out with --fields, or name the two arrays of a map inputs "
                "and outputs."
            )
        sides = [size for size, axis in zip(shape, order, strict=True) if axis in ("x", "y")]
        if len(shape) == 5 and shape[4] >= SMALLEST and shape[4] == sides[-1]:
            require_dimensions(self.path, 3)
        equal = {(i, i + 1) for i in range(1, len(shape) - 1) if shape[i] == shape[i + 1] >= SMALLEST}
        taken = {(order.index("x"), order.index("y"))} if "y" in order else set()
        if min(sides) < SMALLEST or equal - taken:
            example = "sample,x,y,time" if "y" in order else "sample,x,time"
            raise UserError(
                f"{self.path}: {name!r} of shape {shape} may not be ({', '.join(order)}), as is the rule here; say "
                f"what its axes are, for example --axes {','.join(order)} or --axes {example}."
            )
        return order

    def _sizes(
        self, name: str, arrays: Mapping[str, NamedArray], order: Order | None = None
    ) -> dict[str, int]:
        return dict(zip(order or self._order[name], arrays[name].shape, strict=True))

    def _names(self, names: Sequence[str], arrays: Mapping[str, NamedArray]) -> tuple[str, ...]:
        """An array of one field has its name; the fields of another are numbered from 0."""
        counts = {name: self._sizes(name, arrays).get("field", 1) for name in names}
        return tuple(f"{name}{i}" if n > 1 else name for name, n in counts.items() for i in range(n))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_arrays": None}


def _check_latitudes(path: Path, points: npt.NDArray[np.float64], kind: Latitudes) -> None:
    """Refuse points that are not the latitudes, or colatitudes, of a sphere of this kind from north to south."""
    degrees = points if np.abs(points).max() > 4 else np.rad2deg(points)
    found = 90 - degrees if degrees.min() < 0 else degrees
    rows, _ = Sphere(kind).coordinates(len(points), 1)
    wanted = np.rad2deg(rows.numpy())
    close = 18 / len(points)  # a tenth of a row
    if np.allclose(found, wanted, rtol=0, atol=close):
        return
    if np.allclose(found[::-1], wanted, rtol=0, atol=close):
        raise UserError(
            f"{path}: its latitudes run from south to north, and --sphere takes them from north to south; "
            "reverse them and the fields along x."
        )
    ours, theirs = (f"{90 - each[0]:.2f} to {90 - each[-1]:.2f}" for each in (found, wanted))
    raise UserError(
        f"{path}: its latitudes, {ours} degrees, are not those of --sphere {kind}, {theirs}; interpolate the fields to "
        "those, or read them as a box with --walls x --periodic y."
    )


def _with_attributes(layout: Layout, attributes: Mapping[str, str], told: Told, path: Path) -> Layout:
    """A layout with what the file says of itself, where the user tells nothing else."""
    boundary = {key: getattr(told, key) for key in ("periodic", "walls", "sphere")}
    said: dict[str, Any] = {}
    for key in (*boundary, "units"):
        if key in attributes:
            alone: dict[str, Any] = {key: attributes[key]}
            try:
                Told(**alone)
                said |= alone
            except UserError as error:
                if not (any(boundary.values()) if key in boundary else told.units):
                    came = f"as the attribute {key!r} of {path} says; give the flag, which counts more."
                    raise UserError(f"{str(error).rstrip('.')}, {came}") from error
    known = {
        *layout.names,
        *layout.inputs,
        *layout.constants,
        "time",
        "x",
        "y",
    }  # some may not have been chosen
    units = {name: unit for name, unit in Told(units=said.pop("units", "")).unit_of.items() if name in known}
    layout = replace(retold(layout, Told(**said), path), units=layout.units | units)
    kept = tuple(words(attributes.get("keeps", "")))
    if told.keeps or told.fields or any(boundary.values()):
        domain = retold(layout, Told(**boundary), path)
        return replace(layout, symmetries=tuple(word for word in kept if is_symmetry(word, domain, path)))
    for word in kept:
        symmetry_of(word, layout, path)  # refuses what cannot be
    return replace(layout, symmetries=kept)


def _pair(names: Sequence[str], arrays: Mapping[str, NamedArray]) -> tuple[str, str] | None:
    """The two arrays of a map, which agree in sample and space."""
    for pair in PAIRS:
        if set(pair) <= set(names):
            one, other = (arrays[name].shape for name in pair)
            count = min(len(one), len(other))
            if one[:count] == other[:count] and abs(len(one) - len(other)) < 2:
                return pair
    return None


def _fitting(shape: tuple[int, ...], sizes: Mapping[str, int]) -> Order | None:
    """The axes of an array beside one of these sizes; None if it does not fit."""
    space: Order = ("x", "y") if "y" in sizes else ("x",)
    static: Order = ("sample", *space)
    moving: Order = ("sample", "time", *space)
    orders = [moving, (*moving, "field")] if "time" in sizes else []
    orders += [static, (*static, "field"), space if len(space) > 1 else static]
    for order in orders:
        free = [axis for axis in order if axis != "field"]
        if len(order) == len(shape) and shape[: len(free)] == tuple(sizes[axis] for axis in free):
            return order
    return None


def _known(word: str) -> str | None:
    return next((axis for axis, aliases in AXES.items() if word.lower() in aliases), None)


def _axis(path: Path, word: str) -> str:
    axis = _known(word)
    if axis is not None:
        return axis
    if word.lower() in ("z", "level", "depth"):
        require_dimensions(path, 3)
    raise UserError(f"{path}: an axis {word!r} is not known; give --axes with the words {', '.join(AXES)}.")


def _listed(arrays: Mapping[str, NamedArray]) -> str:
    return ", ".join(f"{name} {tuple(array.shape)}" for name, array in arrays.items()) or "nothing"
