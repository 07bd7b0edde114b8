"""Choosing the one number of a method on the training scans."""

import math
from typing import cast

import torch
from torch import Tensor, nn

from data.masks.pool import draw
from data.scans.sense import sample
from data.scans.slices import Slice, SliceDataset, collate
from lab.progress import Progress
from mri.config import TrainConfig
from mri.experiment import normalised
from mri.models.dc_sense import separable_compensation
from mri.models.method import Tunable
from mri.models.msense import MSense

MOST_SLICES = 24
EXPONENTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def choose_strength(method: Tunable, slices: SliceDataset, masks: Tensor, seed: int) -> dict[float, float]:
    """Set the method's strength to the best candidate; return the loss of each, in dB (lower is better)."""
    examples = _examples(slices)
    losses: dict[float, float] = {}
    with Progress(len(method.candidates), "choosing the strength", unit="candidate") as progress:
        for candidate in method.candidates:
            method.strength.fill_(candidate)
            losses[candidate] = _loss(method, examples, masks, seed)
            progress.advance(loss=losses[candidate])
    method.strength.fill_(min(losses, key=losses.__getitem__))
    return losses


def choose_start(
    config: TrainConfig, plane: tuple[int, int], density: Tensor, slices: SliceDataset, masks: Tensor
) -> tuple[Tensor, Tensor]:
    """Frequency weights u (ky), v (kz) for mSENSE to start with: the best exponent of the density."""
    examples = _examples(slices)
    fits = [separable_compensation(density, exponent) for exponent in EXPONENTS]
    losses = [_loss(MSense(plane, weights=fit), examples, masks, config.seed) for fit in fits]
    return fits[losses.index(min(losses))]


def _examples(slices: SliceDataset) -> Slice:
    chosen = range(0, len(slices), max(1, math.ceil(len(slices) / MOST_SLICES)))
    # One slice after the other: an even step through (scan, slice, echo) would always meet the same echo.
    return collate([slices[min(index + number % 2, len(slices) - 1)] for number, index in enumerate(chosen)])


@torch.no_grad()
def _loss(method: nn.Module, examples: Slice, masks: Tensor, seed: int) -> float:
    """Mean squared error of the magnitude in dB, averaged over slices: minus a mean pSNR, up to a constant."""
    mask = masks[draw(seed, 0, cast(Tensor, examples.position), len(masks))]
    kspace, maps, target = normalised(examples)
    image = method(sample(kspace, mask), maps, mask, examples.echo)
    squared = (image.abs() - target.abs()).square().mean((-2, -1))
    return float(10 * squared.log10().mean())
