"""Where the suite speaks to people: one Rich console, silent on all processes but the first."""

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def is_first_process() -> bool:
    """True on the process that may print and write files (rank 0 under DDP, torchrun or SLURM)."""
    rank = os.environ.get("RANK") or os.environ.get("SLURM_PROCID") or os.environ.get("LOCAL_RANK") or "0"
    return int(rank) == 0


@cache
def console() -> "Console":
    """Return the console that commands print to; it is quiet on every process but the first."""
    from rich.console import Console

    return Console(quiet=not is_first_process(), soft_wrap=True, highlight=False)


def say(message: str) -> None:
    """Print one message as it is (square brackets are not markup)."""
    console().print(message, markup=False)
