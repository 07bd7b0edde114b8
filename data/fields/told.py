"""A file together with what a user tells of it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from data.fields.geometry import Box, Geometry, Sphere
from data.fields.layout import Array, Grid, Layout, Source
from data.fields.options import Told
from lab.errors import UserError
from lab.files import fingerprint


class Retold:
    """A source with another geometry, or with some of its fields."""

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
        geometry = _geometry(layout, told)
        rows, columns = layout.grid.resolution
        self.layout: Layout = replace(
            layout,
            names=tuple(names),
            grid=layout.grid if geometry == layout.grid.geometry else Grid.of(geometry, rows, columns),
            unsaid=()
            if told.sphere
            else tuple(axis for axis in layout.unsaid if axis not in told.boundaries),
            fingerprint=fingerprint([layout.fingerprint, names, geometry.to_dict()]),
        )

    def read(self, index: int) -> Array:
        """The chosen fields of a sample."""
        return self.source.read(index)[..., self._chosen]

    def read_inputs(self, index: int) -> Array:
        """All inputs of a sample."""
        return self.source.read_inputs(index)


def require_geometry(path: Path, layout: Layout) -> None:
    """Refuse to go on with a file whose boundary nobody has told."""
    if layout.unsaid:
        axes = ",".join(layout.unsaid)
        raise UserError(
            f"{path} does not say whether its fields are periodic; add --periodic {axes} if they are, --walls {axes} "
            "if the domain ends there, or --sphere."
        )


def _geometry(layout: Layout, told: Told) -> Geometry:
    geometry = layout.grid.geometry
    if told.sphere is not None:
        return Sphere(told.sphere)
    if not told.boundaries:
        return geometry
    rows, columns = ("walls" if ends else "periodic" for ends in geometry.bounded)
    there = {"x": rows, "y": columns} | told.boundaries
    return Box(there["x"], there["y"])  # type: ignore[arg-type]
