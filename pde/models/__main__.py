"""`python -m pde.models`: the models with their parameters and operations."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.checks import at_least
from lab.cli import main
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
        at_least(self, 1, "in_frames")
        at_least(self, 4, "resolution")


def show(config: ListConfig) -> None:
    """List the models with their parameters and the operations of one forward pass."""
    from lab.table import Column, Table
    from pde.models import MODELS, build

    titles = "model", "parameters", "MFLOP per frame", "what it is"
    caption = f"{config.in_frames} frames in, {config.resolution} x {config.resolution} points"
    table = Table([Column(title, digits=0) for title in titles], caption=caption)
    for name, entry in MODELS.items():
        try:
            model = build(name, config.in_frames, _grid(entry, config.resolution))
        except UserError as error:
            table.add(name, None, None, str(error))
            continue
        parameters = sum(parameter.numel() for parameter in model.parameters())
        table.add(name, parameters, model.flops() / 1e6, entry.summary)
    table.print()


def _grid(entry: "Entry", resolution: int) -> "Grid":
    """The sphere for models that only work there, a periodic box for the others."""
    from data.fields.geometry import Box, Sphere
    from data.fields.layout import Grid

    return Grid.of(Sphere() if getattr(entry, "sphere", False) else Box(), resolution)


if __name__ == "__main__":
    main(show)
