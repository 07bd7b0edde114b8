"""Commands: make a data set (no name), join shards (join), look at a file (show)."""

import sys

from data.burgers.config import GenerateConfig
from data.fields.__main__ import join, show
from lab.cli import run


def generate(config: GenerateConfig) -> None:
    """Make viscous Burgers flow between walls; the same command continues after an interruption."""
    from data.fields.generator import generate

    generate(config)


if __name__ == "__main__":
    sys.exit(run("python -m data.burgers", {"": generate, "join": join, "show": show}))
