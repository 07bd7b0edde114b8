"""`python -m pde.models`: the models with their parameters and operations."""

import sys
from dataclasses import dataclass

from lab.cli import run
from lab.errors import UserError


@dataclass
class ListConfig:
    """Options of `python -m pde.models`."""

    in_frames: int = 10
    """Frames that the models see: 10 (fno recipe) or 1 (markov)."""
    resolution: int = 64
    """Points per side."""


def show(config: ListConfig) -> None:
    """List the models with their parameters and the operations of one forward pass."""
    from lab.table import Column, Table
    from pde.models import MODELS, build

    if config.in_frames < 1:
        raise UserError(f"--in-frames must be at least 1, not {config.in_frames}.")
    columns = [
        Column("model", "model"),
        Column("parameters", "parameters"),
        Column("flops", "MFLOP a frame", digits=0),
        Column("what", "what it is"),
    ]
    table = Table(
        columns, caption=f"{config.in_frames} frames in, {config.resolution} x {config.resolution} points"
    )
    for name, what in MODELS.items():
        try:
            model = build(name, config.in_frames, config.resolution)
        except UserError as error:
            table.rows.append({"model": name, "what": str(error)})
            continue
        parameters = sum(parameter.numel() for parameter in model.parameters())
        table.rows.append(
            {"model": name, "parameters": parameters, "flops": model.flops() / 1e6, "what": what}
        )
    table.print()


if __name__ == "__main__":
    sys.exit(run("python -m pde.models", {"": show}))
