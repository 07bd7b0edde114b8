"""`python -m text.models`: the models with what they cost, and how fast they train."""

import sys
from dataclasses import dataclass, field
from itertools import product

from lab.cli import run


@dataclass(frozen=True)
class ListConfig:
    """Options of `python -m text.models`."""

    sizes: list[str] = field(default_factory=lambda: ["mini", "small", "medium"])
    """Sizes to list."""
    vocabulary: int = 50257
    """Number of tokens; GPT-2's when not given."""
    context: int = 1024
    """Tokens per sequence."""
    blocks: int = 4
    """Blocks of the Monarch matrices."""
    time: bool = False
    """Also measure how fast each trains here."""
    batch_size: int = 1
    """With --time: sequences per step."""
    threads: int = 1
    """With --time: CPU threads."""


def show(config: ListConfig) -> None:
    """List the models, dense and Monarch, with parameters and multiply-adds of one sequence."""
    from lab.table import Cell, Column, Table
    from text.models import MODELS
    from text.models.parts.cost import cost, tokens_per_second

    keys = {"model": 0, "size": 0, "matrices": 0, "parameters": 0, "multiply-adds (G)": 1}
    if config.time:
        keys |= {"tokens per second": 0, "speed-up": 2}
    table = Table([Column(key, key, digits=digits) for key, digits in keys.items()])
    variants = {"dense": None, "Monarch": config.blocks}
    for name, size in product(MODELS, config.sizes):
        speeds = {}
        if config.time:
            steps = {"batch_size": config.batch_size, "threads": config.threads}
            speeds = tokens_per_second(name, config.vocabulary, config.context, size, variants, **steps)
        for matrices, blocks in variants.items():
            found = cost(name, config.vocabulary, config.context, size=size, blocks=blocks)
            row: dict[str, Cell] = {"model": name, "size": size, "matrices": matrices}
            row |= {"parameters": found.parameters, "multiply-adds (G)": found.multiply_adds / 1e9}
            if config.time:
                row["tokens per second"] = speeds[matrices]
                row["speed-up"] = speeds[matrices] / speeds["dense"]
            table.rows.append(row)
    table.print()


if __name__ == "__main__":
    sys.exit(run("python -m text.models", {"": show}))
