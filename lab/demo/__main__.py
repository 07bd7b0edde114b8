"""`python -m lab.demo`: train the small model; `python -m lab.demo table`: compare the finished runs."""

import sys
from dataclasses import dataclass

from lab.cli import run
from lab.demo.config import DemoConfig


@dataclass
class TableConfig:
    """Options of `python -m lab.demo table`."""

    latex: bool = False
    """Print the table as LaTeX instead."""


def train(config: DemoConfig) -> None:
    """Recover a hidden Monarch matrix from fewer examples than a dense one needs."""
    from lab.demo.recover import train

    train(config)


def table(config: TableConfig) -> None:
    """Compare the finished runs: error on new vectors, mean and standard error over seeds."""
    from lab.demo.compare import table

    table(config.latex)


if __name__ == "__main__":
    sys.exit(run("python -m lab.demo", {"": train, "table": table}))
