"""Choosing the one number of a method on the training scans, before anything is learned."""

import math
from typing import cast

import torch
from torch import Tensor

from data.masks.pool import draw
from data.scans.sense import sample
from data.scans.slices import Slice, SliceDataset, collate
from lab.progress import Progress
from mri.experiment import normalised
from mri.models.parts.method import Method

MOST_SLICES = 24


def choose(method: Method, slices: SliceDataset, masks: Tensor, seed: int) -> dict[str, float]:
    """Let the method take the best of its candidates; return that strength and its loss, nothing if it has none."""
    if not method.candidates:
        return {}
    examples = _examples(slices)
    losses: dict[float, float] = {}
    with Progress(len(method.candidates), "choosing the strength", unit="candidate") as progress:
        for candidate in method.candidates:
            method.choose(candidate)
            losses[candidate] = _loss(method, examples, masks, seed)
            progress.advance(strength=candidate, loss=losses[candidate])
    best = min(losses, key=losses.__getitem__)
    method.choose(best)
    return {"strength": best, "loss": losses[best]}


def _examples(slices: SliceDataset) -> Slice:
    chosen = range(0, len(slices), max(1, math.ceil(len(slices) / MOST_SLICES)))
    # One slice after the other: an even step through (scan, slice, echo) would always meet the same echo.
    return collate([slices[min(index + number % 2, len(slices) - 1)] for number, index in enumerate(chosen)])


@torch.no_grad()
def _loss(method: Method, examples: Slice, masks: Tensor, seed: int) -> float:
    """Mean squared error of the magnitude in dB, averaged over slices: minus a mean pSNR, up to a constant."""
    mask = masks[draw(seed, 0, cast(Tensor, examples.position), len(masks))]
    kspace, maps, target = normalised(examples)
    image = method(sample(kspace, mask), maps, mask, examples.echo)
    squared = (image.abs() - target.abs()).square().mean((-2, -1))
    return float(10 * squared.log10().mean())
