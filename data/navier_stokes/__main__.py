"""Commands: make a data set (no name), join shards (join), look at a file (show)."""

import sys

from data.navier_stokes.config import GenerateConfig, JoinConfig, ShowConfig
from lab.cli import run


def generate(config: GenerateConfig) -> None:
    """Make the Navier-Stokes data of the FNO benchmark; the same command continues after an interruption."""
    from data.navier_stokes.generate import generate

    generate(config)


def join(config: JoinConfig) -> None:
    """Join the shards beside FILE into FILE."""
    from data.navier_stokes.join import join

    join(config)


def show(config: ShowConfig) -> None:
    """Write a contact sheet and an animation of FILE and print its energy, enstrophy and spectrum."""
    from data.navier_stokes.show import show

    show(config)


if __name__ == "__main__":
    sys.exit(run("python -m data.navier_stokes", {"": generate, "join": join, "show": show}))
