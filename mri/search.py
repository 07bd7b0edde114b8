"""Choosing the strength of a method on the training scans, before anything is learned."""

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

MOST_SLICES, AT_ONCE = 24, 8


def choose(method: Method, slices: SliceDataset, masks: Tensor, seed: int) -> dict[str, float]:
    """Let the method take the best of its candidates, for each echo where it can.

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
    echoes = sorted(set(examples.echo.tolist()))  # type: ignore[attr-defined]
    if not method.chosen_per_echo or len(echoes) == 1:
        return {**method.described(best), "loss": float(table.mean(1).min())}
    chosen: dict[str, float] = {}
    least = torch.empty(len(examples.scan_id))
    for echo in echoes:
        mine = cast(Tensor, examples.echo) == echo
        number = int(table[:, mine].mean(1).argmin())
        method.choose(method.candidates[number], echo)
        described = method.described(method.candidates[number])
        chosen |= {f"{name}_{echo + 1}": value for name, value in described.items()}
        least[mine] = table[number, mine]
    return {**chosen, "loss": float(least.mean())}


def _examples(slices: SliceDataset) -> Slice:
    chosen = range(0, len(slices), max(1, math.ceil(len(slices) / MOST_SLICES)))
    # One slice after the other: an even step through (scan, slice, echo) would always meet the same echo.
    return collate([slices[min(index + number % 2, len(slices) - 1)] for number, index in enumerate(chosen)])


@torch.inference_mode()
def _losses(method: Method, examples: Slice, masks: Tensor, seed: int) -> Tensor:
    """Mean squared error of the magnitude of each slice in dB: minus its pSNR, up to a constant."""
    mask = masks[draw(seed, 0, cast(Tensor, examples.position), len(masks))]
    kspace, maps, target = normalised(examples)
    parts = zip(kspace.split(AT_ONCE), maps.split(AT_ONCE), mask.split(AT_ONCE),
                cast(Tensor, examples.echo).split(AT_ONCE), strict=True)  # fmt: skip
    image = torch.cat([method(sample(part, mask), maps, mask, echo) for part, maps, mask, echo in parts])
    squared = (image.abs() - target.abs()).square().mean((-2, -1))
    return 10 * squared.log10()
