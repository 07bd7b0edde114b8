"""A file together with what a user tells of it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from data.fields.geometry import Box, Geometry, Line, Move, Sphere
from data.fields.layout import EVERY, Array, Grid, Layout, Source
from data.fields.options import Told, words
from lab.errors import UserError
from lab.files import fingerprint

MOVES: dict[str, Move] = {
    "mirror x": "mirror rows",
    "mirror y": "mirror columns",
    "turn x": "turn rows",
    "turn y": "turn columns",
    "transpose": "transpose",
    "half turn": "half turn",
}
"""Symmetries as a user writes them."""


class Retold(Source):
    """A source with what a user tells of it, or with some of its fields."""

    def __init__(self, source: Source, told: Told, chosen: Sequence[str]) -> None:
        self.source, self.path, self.samples = source, source.path, source.samples
        layout = source.layout
        names = list(chosen or layout.names)
        for name in names:
            if name not in layout.names:
                raise UserError(
                    f"{self.path} has no field {name!r}; --fields chooses from {', '.join(layout.names)}."
                )
        self._chosen = [layout.names.index(name) for name in names]
        fresh = retold(replace(layout, names=tuple(names)), told, self.path)
        if told.sphere or told.boundaries or chosen:
            content = [layout.fingerprint, names, fresh.grid.geometry.to_dict()]
            fresh = replace(fresh, fingerprint=fingerprint(content))
        self.layout: Layout = fresh

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """The chosen fields of a sample."""
        return self.source.read(index, frames)[..., self._chosen]

    def read_inputs(self, index: int) -> Array:
        """All inputs of a sample."""
        return self.source.read_inputs(index)

    def read_constants(self, index: int) -> Array:
        """All constants of a sample."""
        return self.source.read_constants(index)


def retold(layout: Layout, told: Told, path: Path) -> Layout:
    """A layout with what is told of the boundary, times, units and symmetries."""
    geometry = _geometry(layout, told, path)
    known = (*layout.names, *layout.inputs, *layout.constants, "time", "x", "y")
    for name in told.unit_of:
        if name not in known:
            raise UserError(
                f"--units: {path} has no field {name!r}; it has {', '.join(known[:-3])}, and time, x, y."
            )
    new = replace(
        layout,
        grid=layout.grid if geometry == layout.grid.geometry else Grid.of(geometry, *layout.grid.resolution),
        unsaid=() if told.sphere else tuple(axis for axis in layout.unsaid if axis not in told.boundaries),
        units=layout.units | told.unit_of,
        symmetries=tuple(words(told.keeps)) or layout.symmetries,
    )
    if told.keeps:
        for word in new.symmetries:
            symmetry_of(word, new, path)  # refuses what cannot be
    else:  # a boundary that is told counts more than what the file keeps within its own
        new = replace(new, symmetries=tuple(word for word in new.symmetries if is_symmetry(word, new, path)))
    if told.time_step is None:
        return new
    return replace(new, times=told.time_step * torch.arange(len(layout.times), dtype=torch.float64))


def symmetry_of(word: str, layout: Layout, path: Path) -> tuple[Move, tuple[int, ...]]:
    """The move that a symmetry such as "mirror x:u" names, and the fields whose sign it changes."""
    move, _, odd = (part.strip() for part in word.partition(":"))
    domain = layout.grid.geometry
    possible = [name for name, each in MOVES.items() if each in domain.symmetries]
    if "transpose" in possible and len(set(layout.grid.resolution)) > 1:
        possible.remove("transpose")
    if move not in possible:
        raise UserError(
            f"--keeps: {word!r} is no symmetry of {path.name}, {domain}; it may have {', '.join(possible)}."
        )
    fields = [name for name in odd.split("+") if name]
    for name in fields:
        if name not in layout.names or layout.static:
            reason = "the sign of a map's answer" if layout.static else f"{name!r}, which is no field"
            raise UserError(
                f"--keeps {word}: {reason} cannot change; {path.name} has {', '.join(layout.names)}."
            )
    return MOVES[move], tuple(layout.names.index(name) for name in fields)


def is_symmetry(word: str, layout: Layout, path: Path) -> bool:
    """Whether a word names a symmetry that the domain has."""
    try:
        symmetry_of(word, layout, path)
    except UserError:
        return False
    return True


def require_geometry(path: Path, layout: Layout) -> None:
    """Refuse to go on with a file whose boundary nobody has told."""
    if layout.unsaid:
        axes = ",".join(layout.unsaid)
        sphere = "" if isinstance(layout.grid.geometry, Line) else ", or --sphere"
        raise UserError(
            f"{path} does not say whether its fields are periodic; add --periodic {axes} if they are, --walls {axes} "
            f"if the domain ends there{sphere}."
        )


def _geometry(layout: Layout, told: Told, path: Path) -> Geometry:
    geometry = layout.grid.geometry
    if isinstance(geometry, Line) and (told.sphere or "y" in told.boundaries):
        raise UserError(f"{path} holds fields on a line, which has no y and is no sphere; tell of x alone.")
    if told.sphere is not None:
        return Sphere(told.sphere)
    if not told.boundaries:
        return geometry
    rows, columns = ("walls" if ends else "periodic" for ends in geometry.bounded)
    there = {"x": rows, "y": columns} | told.boundaries
    if isinstance(geometry, Line):
        return Line(there["x"])  # type: ignore[arg-type]
    return Box(there["x"], there["y"])  # type: ignore[arg-type]
