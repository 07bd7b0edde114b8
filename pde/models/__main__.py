"""`python -m pde.models`: the models with their parameters and operations."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.cli import run
from lab.errors import UserError

if TYPE_CHECKING:
    from data.fields.layout import Grid
    from lab.registry import Entry


@dataclass(frozen=True)
class ListConfig:
    """Options of `python -m pde.models`."""

    in_frames: int = 10
    """Frames that the models see: 10 (fno recipe) or 1 (markov)."""
    resolution: int = 64
    """Points per side."""

    def __post_init__(self) -> None:
        if self.in_frames < 1:
            raise UserError(f"--in-frames must be at least 1, not {self.in_frames}.")


def show(config: ListConfig) -> None:
    """List the models with their parameters and the operations of one forward pass."""
    from lab.table import Cell, Column, Table
    from pde.models import MODELS, build

    columns = [
        Column("model", "model"),
        Column("parameters", "parameters"),
        Column("flops", "MFLOP per frame", digits=0),
        Column("what", "what it is"),
    ]
    table = Table(
        columns, caption=f"{config.in_frames} frames in, {config.resolution} x {config.resolution} points"
    )
    for name, entry in MODELS.items():
        try:
            model = build(name, config.in_frames, _grid(entry, config.resolution))
        except UserError as error:
            table.rows.append({"model": name, "what": str(error)})
            continue
        parameters = sum(parameter.numel() for parameter in model.parameters())
        row: dict[str, Cell] = {
            "model": name,
            "parameters": parameters,
            "flops": model.flops() / 1e6,
            "what": entry.summary,
        }
        table.rows.append(row)
    table.print()


def _grid(entry: "Entry", resolution: int) -> "Grid":
    """The sphere for models that only work there, a periodic box for the others."""
    from data.fields.geometry import Box, Sphere
    from data.fields.layout import Grid

    return Grid.of(Sphere() if getattr(entry, "sphere", False) else Box(), resolution)


if __name__ == "__main__":
    sys.exit(run("python -m pde.models", {"": show}))
