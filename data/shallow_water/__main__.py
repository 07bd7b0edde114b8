"""Commands: make a data set (no name), look at a file (show)."""

import sys

from data.field_config import ShowConfig
from data.shallow_water.config import GenerateConfig
from lab.cli import run


def generate(config: GenerateConfig) -> None:
    """Make shallow water on the rotating sphere; the same command continues after an interruption."""
    from data.shallow_water.generate import generate

    generate(config)


def show(config: ShowConfig) -> None:
    """Draw samples of FILE and print what their fields are like."""
    from data.field_show import show

    show(config)


if __name__ == "__main__":
    sys.exit(run("python -m data.shallow_water", {"": generate, "show": show}))
