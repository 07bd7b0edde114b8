"""Commands: make a data set (no name), join shards (join), look at a file (show)."""

from data.darcy.config import GenerateConfig
from data.fields.__main__ import join, show
from lab.cli import main


def generate(config: GenerateConfig) -> None:
    """Make Darcy flow data as in the FNO benchmark; the same command continues after an interruption."""
    from data.fields.generator import generate

    generate(config)


if __name__ == "__main__":
    main({"": generate, "join": join, "show": show})
