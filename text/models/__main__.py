"""`python -m text.models`: the models with what they cost, and how fast they train."""

from dataclasses import dataclass, field
from itertools import product

from lab.checks import at_least, at_most
from lab.cli import main


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

    def __post_init__(self) -> None:
        at_least(self, 1, "vocabulary", "context", "batch_size", "threads")
        at_most(self, 2**15, "threads")


def show(config: ListConfig) -> None:
    """List the models, dense and Monarch, with parameters and multiply-adds of one sequence."""
    from lab.table import Column, Table
    from text.models import MODELS
    from text.models.parts.cost import cost, tokens_per_second

    digits = {"parameters": 0, "multiply-adds (G)": 1}
    digits |= {"tokens per second": 0, "speed-up": 2} if config.time else {}
    costs = [Column(title, digits=number) for title, number in digits.items()]
    words = [Column(title) for title in ("model", "size", "matrices")]
    table = Table([*words, *costs, Column("what it is", extra=True)])
    variants = {"dense": None, "Monarch": config.blocks}
    for name, size in product(MODELS, config.sizes):
        speeds = {}
        if config.time:
            steps = {"batch_size": config.batch_size, "threads": config.threads}
            speeds = tokens_per_second(name, config.vocabulary, config.context, size, variants, **steps)
        for matrices, blocks in variants.items():
            found = cost(name, config.vocabulary, config.context, size=size, blocks=blocks)
            speed = [speeds[matrices], speeds[matrices] / speeds["dense"]] if config.time else []
            numbers = found.parameters, found.multiply_adds / 1e9, *speed
            table.add(name, size, matrices, *numbers, MODELS[name].summary)
    table.print()


if __name__ == "__main__":
    main(show)
