"""`python -m lab.demo.models`: the models with their parameters."""

from dataclasses import dataclass

from lab.cli import main


@dataclass(frozen=True)
class ListConfig:
    """Options of `python -m lab.demo.models`."""

    size: int = 64
    """Length of the vectors."""


def show(config: ListConfig) -> None:
    """List the models with their parameters."""
    from lab.demo.models import MODELS, build
    from lab.table import Column, Table

    table = Table([Column(key) for key in ("model", "parameters", "summary")])
    for entry in MODELS.values():
        parameters = sum(each.numel() for each in build(entry.name, config.size).parameters())
        table.add(entry.name, parameters, entry.summary)
    table.print()


if __name__ == "__main__":
    main(show)
