"""What a model costs: parameters and multiplications, counted without computing anything; and its speed."""

import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
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


def cost(name: str, vocabulary: int, context: int, **options: Any) -> Cost:
    """The cost of the model that `build` makes from the same arguments."""
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:  # shapes without values
        model = build(name, vocabulary, context, **options)
        with sdpa_kernel(SDPBackend.MATH):  # the counter does not know the kernel for CPUs
            model.hidden(torch.zeros(1, context, dtype=torch.long))
    return Cost(sum(each.numel() for each in model.parameters()), counter.get_total_flops() // 2)


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
