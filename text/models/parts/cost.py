"""What a model costs: parameters and multiplications, counted without computing anything; and its speed."""

import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lab.clock import busy
from text.metrics import surprise
from text.models import build

ROUNDS = 5
"""Steps of each model that are timed, after one that is not."""


class Cost(NamedTuple):
    """Parameters, and multiply-adds of one sequence through all blocks, as papers count them (no output layer)."""

    parameters: int
    multiply_adds: int
    trained: int
    """Parameters that learn: all of them, or those of the adapters."""


def cost(name: str, vocabulary: int, context: int, **options: Any) -> Cost:
    """The cost of the model that `build` makes from the same arguments."""
    with torch.device("meta"), FlopCounterMode(display=False) as counter:  # shapes without values
        model = build(name, vocabulary, context, **options)
        with sdpa_kernel(SDPBackend.MATH):  # the counter does not know the kernel for CPUs
            model.hidden(torch.zeros(1, context, dtype=torch.long))
    sizes = [(each.numel(), each.requires_grad) for each in model.parameters()]
    parameters, trained = sum(size for size, _ in sizes), sum(size for size, learns in sizes if learns)
    return Cost(parameters, counter.get_total_flops() // 2, trained)


def tokens_per_second(
    name: str,
    vocabulary: int,
    context: int,
    size: str,
    variants: Mapping[str, int | None],
    batch_size: int = 1,
    threads: int = 1,
) -> dict[str, float]:
    """Tokens per second of training steps for each number of blocks (None: dense).

    The variants take turns, so that what else happens on the machine meets them alike.
    """
    torch.set_num_threads(threads)
    models = {
        key: build(name, vocabulary, context, size=size, blocks=blocks) for key, blocks in variants.items()
    }
    optimizers = {key: torch.optim.AdamW(model.parameters(), fused=True) for key, model in models.items()}
    windows = torch.randint(vocabulary, (batch_size, context + 1), generator=torch.Generator().manual_seed(0))
    times: dict[str, list[float]] = {key: [] for key in models}
    for _ in range(1 + ROUNDS):
        for key, model in models.items():
            begun = busy()
            optimizers[key].zero_grad()
            surprise(model, *model.question(windows)).mean().backward()
            optimizers[key].step()
            times[key].append(busy() - begun)
    return {key: batch_size * context / statistics.median(times[key][1:]) for key in models}
