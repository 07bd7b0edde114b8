"""Mean, spread and extremes of fields, all samples at once or one after another."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Moments(NamedTuple):
    """Mean, spread, and extremes of each field; mean and spread of one field are plain numbers."""

    mean: Tensor
    std: Tensor
    low: Tensor
    high: Tensor


def moments(pieces: Iterable[Tensor], odd: Sequence[int] = ()) -> Moments:
    """Those of all pieces (..., field) together, which pass one by one.

    Of a field that is `odd` the opposite of every value counts as well: it has no mean.

    >>> x = torch.randn(6, 5, 3) + 100
    >>> found = moments(x.split(2))
    >>> torch.allclose(found.mean, x.mean((0, 1))), torch.allclose(found.std, x.flatten(0, 1).std(0), rtol=1e-4)
    (True, True)
    >>> signed, both = moments([x], odd=[0, 1, 2]), moments([x, -x])
    >>> bool((signed.mean == 0).all()), torch.allclose(signed.std, both.std, rtol=0.01)
    (True, True)
    >>> torch.equal(signed.low, both.low)
    True
    """
    count, ends = 0, list[tuple[Tensor, Tensor]]()
    for piece in pieces:
        values = piece.double().flatten(0, -2)
        if count == 0:
            about = values.mean(0)  # near the mean, so that squares lose no digits
            sums, squares = torch.zeros_like(about), torch.zeros_like(about)
        count, sums = count + len(values), sums + (values - about).sum(0)
        squares = squares + (values - about).square().sum(0)
        ends.append(extremes(piece))
    mean, variance = about + sums / count, (squares - sums**2 / count) / max(count - 1, 1)
    low, high = (torch.stack(each) for each in zip(*ends, strict=True))
    low, high = low.amin(0), high.amax(0)
    for field in odd:
        variance[field] += mean[field] ** 2
        mean[field] = 0.0
        high[field] = torch.maximum(high[field], -low[field])
        low[field] = -high[field]
    mean, std = mean.float(), spread(variance.clamp(min=0).sqrt().float())
    one = len(mean) == 1
    return Moments(mean[0] if one else mean, std[0] if one else std, low, high)


def extremes(values: Tensor) -> tuple[Tensor, Tensor]:
    """The least and the largest value of each field (the last axis)."""
    lines = values.flatten(0, -2)
    return lines.amin(0), lines.amax(0)


def spread(std: Tensor) -> Tensor:
    """A standard deviation to divide by: 1 for what never changes."""
    return torch.where(std > 0, std, 1.0)
