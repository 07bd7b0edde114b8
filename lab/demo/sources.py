"""From options to training, validation and test samples: pairs (x, M x) of one hidden Monarch matrix M per seed."""

from typing import Any, NamedTuple

import torch
from torch.utils.data import TensorDataset

from lab.demo.config import DataOptions
from lab.files import fingerprint
from monarch_core import Monarch

HELD_OUT = 256
"""Pairs to validate on, and as many to test on."""


class Samples(NamedTuple):
    """Pairs with noise to train on, and without to choose the best weights and to test on."""

    train: TensorDataset
    validation: TensorDataset
    test: TensorDataset


def samples(options: DataOptions, seed: int) -> Samples:
    """All pairs; the seed decides the matrix, the vectors and the noise."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed + 1)
        hidden = Monarch(options.size).to_dense().detach()
    n = options.num_train
    x = torch.randn(n + 2 * HELD_OUT, options.size, generator=generator)
    y = x @ hidden.T
    y[:n] += options.noise * torch.randn(n, options.size, generator=generator)
    parts = slice(n), slice(n, n + HELD_OUT), slice(n + HELD_OUT, None)
    return Samples(*(TensorDataset(x[part], y[part]) for part in parts))


def describe(options: DataOptions) -> dict[str, Any]:
    """What a run's manifest says of its data."""
    said = {"name": "hidden Monarch matrix", "size": options.size, "noise": options.noise}
    return {**said, "origin": "synthetic", "fingerprint": fingerprint(said)}
