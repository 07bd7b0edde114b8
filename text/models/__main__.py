"""`python -m text.models`: the models with what they cost, and how fast they train."""

import sys
from dataclasses import dataclass, field

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
    """Also measure how fast each trains here, on one sequence per step."""
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
    for entry in MODELS.values():
        for size in config.sizes:
            arguments = (entry.name, config.vocabulary, config.context)
            both = {"dense": None, "Monarch": config.blocks}
            speeds = tokens_per_second(*arguments, size, both, config.threads) if config.time else {}
            for matrices, blocks in both.items():
                parameters, multiply_adds = cost(*arguments, size=size, blocks=blocks)
                row: dict[str, Cell] = {
                    "model": entry.name,
                    "size": size,
                    "matrices": matrices,
                    "parameters": parameters,
                }
                row["multiply-adds (G)"] = multiply_adds / 1e9
                if config.time:
                    row |= {
                        "tokens per second": speeds[matrices],
                        "speed-up": speeds[matrices] / speeds["dense"],
                    }
                table.rows.append(row)
    table.print()


if __name__ == "__main__":
    sys.exit(run("python -m text.models", {"": show}))
