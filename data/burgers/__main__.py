"""Commands: make a data set (no name), join shards (join), look at a file (show)."""

from data.burgers.config import GenerateConfig
from data.fields.__main__ import join, show
from lab.cli import main


def generate(config: GenerateConfig) -> None:
    """Make viscous Burgers flow between walls; the same command continues after an interruption."""
    from data.fields.generator import generate

    generate(config)


if __name__ == "__main__":
    main({"": generate, "join": join, "show": show})
