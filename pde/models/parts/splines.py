"""Values between the points of a grid: cubic and linear splines, through these points or through twice as many."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from monarch_core.transforms.tables import interpolated
from pde.models.options import Parity

Degree = Literal[1, 3]

MARGIN = 3
"""Rows and columns beyond the grid that a spline may need."""


def upsampling(n: int, times: int = 2) -> Tensor:
    """The matrix (times n, n) that interpolates a periodic function by its Fourier series, float64."""
    return resampling(n, times * n)


def resampling(n: int, points: int) -> Tensor:
    """The matrix (points, n) from n values of a periodic function to its Fourier series at other points, float64.

    Fewer points see what they resolve of the series.
    """
    each = torch.eye(n, dtype=torch.float64)
    return interpolated(torch.stack((each, torch.zeros_like(each)), -1), points, axis=0)[..., 0]


def spline_around(n: int) -> Tensor:
    """The matrix from the values of a periodic function to the coefficients of its cubic spline, float64."""
    eye = torch.eye(n, dtype=torch.float64)
    return torch.linalg.inv((4 * eye + eye.roll(1, 0) + eye.roll(-1, 0)) / 6)


def spline_on_torus(n: int, times: int = 2, degree: Degree = 3) -> Tensor:
    """The coefficients on `times` as many points of a periodic axis and the margins, from the values, float64.

    Those of a linear spline are its values.
    """
    finer = upsampling(n, times)
    return around_torus(finer if degree == 1 else spline_around(times * n) @ finer, 0)


def spline_between_walls(n: int, parity: Parity, degree: Degree = 3) -> Tensor:
    """The same between walls half a point beyond the first and the last point: (2 n + 1 + 2 MARGIN, n), float64.

    Twice as many points, both walls among them. Beyond them the function is mirrored, a cosine series; or with the
    parity "odd" mirrored with the opposite sign, a sine series, and zero on the walls.
    """
    even = parity == "even"
    k = torch.pi * (torch.arange(n, dtype=torch.float64) + (0 if even else 1))
    here, there = (torch.arange(n, dtype=torch.float64) + 0.5) / n, torch.arange(2 * n + 1).double() / (2 * n)
    waves, finer = (wave.cos() if even else wave.sin() for wave in (here[:, None] * k, there[:, None] * k))
    values = finer @ (waves / waves.square().sum(0)).T
    spline = values
    if degree == 3:
        beside = torch.diag(torch.ones(2 * n, dtype=torch.float64), 1)
        system = 4 * torch.eye(2 * n + 1, dtype=torch.float64) + beside + beside.T
        system[0, 1] = system[-1, -2] = 2 if even else 0
        spline = torch.linalg.solve(system / 6, values)
    before, after = spline[1 : MARGIN + 1].flip(0), spline[-MARGIN - 1 : -1].flip(0)
    return torch.cat((before, spline, after) if even else (-before, spline, -after))


def spline_values(coefficients: Tensor, place: Tensor, degree: Degree = 3) -> Tensor:
    """The spline (batch, channel, row, column) at places in points (batch, x, y, 2): (batch, x, y, channel)."""
    # An axis at a time is quicker than in pairs.
    place = place.to(coefficients.dtype).movedim(-1, 0).contiguous()
    made = _linear(coefficients, place) if degree == 1 else _cubic(coefficients, place)
    return made.permute(0, 2, 3, 1)


def _linear(image: Tensor, place: Tensor) -> Tensor:
    y, x = (_from_minus_one(along, n) for along, n in zip(place, image.shape[-2:], strict=True))
    return grid_sample(image, torch.stack((x, y), -1), align_corners=True)


def _cubic(image: Tensor, place: Tensor) -> Tensor:
    """Along an axis the four weights of a cubic B-spline are positive, so two pairs of neighbours are each one linear
    interpolation (Sigg and Hadwiger 2005): four bilinear samplings, which every device has, instead of 16 points.
    """
    batch, channels, *sides = image.shape
    whole = place.detach().floor()
    t = place - whole
    t2 = t * t
    t3 = t2 * t
    upper = (1 + 3 * (t + t2) - 2 * t3) / 6  # weight of the second pair
    first = whole - 1 + (4 - 6 * t2 + 3 * t3) / (6 - 6 * upper)
    second = whole + 1 + t3 / (6 * upper)
    pairs = torch.stack((first, second), 2).unbind(0)
    y, x = (_from_minus_one(pair, n) for pair, n in zip(pairs, sides, strict=True))  # (batch, pair, x, y)
    rows, columns = place.shape[2:]
    shape = (batch, 2, 2, rows, columns)
    four = torch.stack((x[:, None].expand(shape), y[:, :, None].expand(shape)), -1)
    # The four places of a point below each other: one call for all.
    sampled = grid_sample(image, four.view(batch, 4 * rows, columns, 2), align_corners=True)
    above, below = sampled.view(batch, channels, 2, 2, rows, columns).unbind(2)
    between_rows, between_columns = upper.unbind(0)
    left, right = torch.lerp(above, below, between_rows[:, None, None]).unbind(2)
    return torch.lerp(left, right, between_columns[:, None])


def _from_minus_one(place: Tensor, n: int) -> Tensor:
    """Places in points of an axis as `grid_sample` counts them: from -1 at the first of n points to 1 at the last."""
    return place * (2 / (n - 1)) - 1


def around_torus(image: Tensor, axis: int) -> Tensor:
    """An image with margins along a periodic axis."""
    n = image.shape[axis]
    return torch.cat((image.narrow(axis, n - MARGIN, MARGIN), image, image.narrow(axis, 0, MARGIN)), axis)
