"""Commands: make a data set (no name), join shards (join), look at a file (show)."""

from data.fields.__main__ import join
from data.fields.options import ShowConfig
from data.navier_stokes.config import GenerateConfig
from lab.cli import main


def generate(config: GenerateConfig) -> None:
    """Make the Navier-Stokes data of the FNO benchmark; the same command continues after an interruption."""
    from data.fields.generator import generate

    generate(config)


def show(config: ShowConfig) -> None:
    """Write a contact sheet and an animation of FILE and print its energy, enstrophy and spectrum."""
    from data.fields.show import show
    from data.navier_stokes.diagnostics import summary

    show(config, summary)


if __name__ == "__main__":
    main({"": generate, "join": join, "show": show})
