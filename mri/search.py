"""Choosing the strength of a method on the training scans, before anything is learned."""

import math
from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor
from torch.utils.data import Subset

from data.scans.sense import sample
from data.scans.slices import Slice, SliceDataset, collate
from lab.loader import in_order
from lab.progress import Progress
from mri.experiment import drawn, normalised
from mri.models.parts.method import Method

MOST_SLICES, AT_ONCE = 24, 8


def choose(method: Method, slices: SliceDataset, masks: Mapping[str, Tensor], seed: int) -> dict[str, float]:
    """Let the method take the best of its candidates, for each echo where it can; masks (masks, ky, kz) are by scan.

    Returns what was chosen, by name (`strength`, or `strength_1`, `strength_2` for echoes), and its `loss`; nothing if
    there are no candidates.
    """
    if not method.candidates:
        return {}
    examples = _examples(slices)
    losses = []
    with Progress(len(method.candidates), "choosing the strength", unit="candidate") as progress:
        for candidate in method.candidates:
            method.choose(candidate)
            losses.append(_losses(method, examples, masks, seed))
            progress.advance(1, **method.described(candidate), loss=float(losses[-1].mean()))
    table = torch.stack(losses)  # (candidates, slices)
    best = method.candidates[int(table.mean(1).argmin())]
    method.choose(best)
    echo_of = torch.cat([cast(Tensor, batch.echo) for batch in examples])
    echoes = sorted(set(echo_of.tolist()))
    if not method.chosen_per_echo or len(echoes) == 1:
        return {**method.described(best), "loss": float(table.mean(1).min())}
    chosen: dict[str, float] = {}
    least = torch.empty(len(echo_of))
    for echo in echoes:
        mine = echo_of == echo
        number = int(table[:, mine].mean(1).argmin())
        method.choose(method.candidates[number], echo)
        described = method.described(method.candidates[number])
        chosen |= {f"{name}_{echo + 1}": value for name, value in described.items()}
        least[mine] = table[number, mine]
    return {**chosen, "loss": float(least.mean())}


def _examples(slices: SliceDataset) -> list[Slice]:
    """Batches of some slices, each of one size."""
    places = range(0, len(slices), max(1, math.ceil(len(slices) / MOST_SLICES)))
    # One slice after the other: an even step through (scan, slice, echo) would always meet the same echo.
    chosen = Subset(slices, [min(at + number % 2, len(slices) - 1) for number, at in enumerate(places)])
    return [collate([chosen[index] for index in batch]) for batch in in_order(chosen, AT_ONCE)]


@torch.inference_mode()
def _losses(method: Method, examples: list[Slice], masks: Mapping[str, Tensor], seed: int) -> Tensor:
    """Mean squared error of the magnitude of each slice in dB: minus its pSNR, up to a constant."""
    found = []
    for batch in examples:
        mask = drawn(masks, batch, seed, epoch=0)
        kspace, maps, target = normalised(batch)
        image = method(sample(kspace, mask), maps, mask, batch.echo)
        squared = (image.abs() - target.abs()).square().mean((-2, -1))
        # An empty slice, whose maps are zero, is met exactly by every candidate: -inf would decide for the first.
        found.append(torch.where(target.abs().amax((-2, -1)) > 0, squared, 1.0))
    return 10 * torch.cat(found).log10()
