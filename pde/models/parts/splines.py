"""Values between the points of a grid: cubic splines through twice as many points, and cubic convolution."""

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from monarch_core.transforms.tables import interpolated
from pde.models.options import Parity

MARGIN = 3
"""Rows and columns beyond the grid that a spline may need."""
HALF = (torch.bfloat16, torch.float16)
"""In half precision a number of points is a quarter of a point off: too little to say where a point lies."""


def upsampling(n: int, times: int = 2) -> Tensor:
    """The matrix (times n, n) that interpolates a periodic function by its Fourier series, float64."""
    points = torch.eye(n, dtype=torch.float64)
    return interpolated(torch.stack((points, torch.zeros_like(points)), -1), times * n, axis=0)[..., 0]


def spline_around(n: int) -> Tensor:
    """The matrix from the values of a periodic function to the coefficients of its cubic spline, float64."""
    eye = torch.eye(n, dtype=torch.float64)
    return torch.linalg.inv((4 * eye + eye.roll(1, 0) + eye.roll(-1, 0)) / 6)


def spline_on_torus(n: int, times: int = 2) -> Tensor:
    """The coefficients on `times` as many points of a periodic axis and the margins, from the values, float64."""
    return around_torus(spline_around(times * n) @ upsampling(n, times), 0)


def spline_between_walls(n: int, parity: Parity) -> Tensor:
    """The same between walls half a point beyond the first and the last point: (2 n + 1 + 2 MARGIN, n), float64.

    Twice as many points, both walls among them. Beyond them the function is mirrored, a cosine series; or with the
    parity "odd" mirrored with the opposite sign, a sine series, and zero on the walls.
    """
    even = parity == "even"
    k = torch.pi * (torch.arange(n, dtype=torch.float64) + (0 if even else 1))
    here, there = (torch.arange(n, dtype=torch.float64) + 0.5) / n, torch.arange(2 * n + 1).double() / (2 * n)
    waves, finer = (wave.cos() if even else wave.sin() for wave in (here[:, None] * k, there[:, None] * k))
    values = finer @ (waves / waves.square().sum(0)).T
    beside = torch.diag(torch.ones(2 * n, dtype=torch.float64), 1)
    system = 4 * torch.eye(2 * n + 1, dtype=torch.float64) + beside + beside.T
    system[0, 1] = system[-1, -2] = 2 if even else 0
    spline = torch.linalg.solve(system / 6, values)
    before, after = spline[1 : MARGIN + 1].flip(0), spline[-MARGIN - 1 : -1].flip(0)
    return torch.cat((before, spline, after) if even else (-before, spline, -after))


def spline_values(coefficients: Tensor, place: Tensor) -> Tensor:
    """The cubic spline (batch, channel, row, column) at places in points (batch, x, y, 2): (batch, x, y, channel).

    Along an axis the four weights of a cubic B-spline are positive, so two pairs of neighbours are each one linear
    interpolation (Sigg and Hadwiger 2005): four bilinear samplings, which every device has, instead of 16 points.
    """
    batch, channels, *sides = coefficients.shape
    image = coefficients.float() if coefficients.dtype in HALF else coefficients
    place = place.to(image.dtype).movedim(-1, 0).contiguous()  # an axis at a time is quicker than in pairs
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
    made = torch.lerp(left, right, between_columns[:, None])
    return made.to(coefficients.dtype).permute(0, 2, 3, 1)


def bicubic_values(image: Tensor, place: Tensor) -> Tensor:
    """Cubic convolution in one call, for velocities: quicker than a spline and less accurate.

    The kernel that devices have (a = -0.75) is of first order between points, by up to a twentieth of the change from
    one point to the next; a network that learns its velocities learns to live with that.
    """
    values = image.float() if image.dtype in HALF else image
    # Axis by axis: a tensor of the sides would be a constant that exporters do not take.
    axes = zip(place.to(values.dtype).unbind(-1), image.shape[-2:], strict=True)
    where = torch.stack([_from_minus_one(along, n) for along, n in axes], -1)
    sampled = grid_sample(
        values.mT, where, mode="bicubic", align_corners=True
    )  # columns first, as places have rows
    return sampled.to(image.dtype).permute(0, 2, 3, 1)


def _from_minus_one(place: Tensor, n: int) -> Tensor:
    """Places in points of an axis as `grid_sample` counts them: from -1 at the first of n points to 1 at the last."""
    return place * (2 / (n - 1)) - 1


def around_torus(image: Tensor, axis: int) -> Tensor:
    """An image with margins along a periodic axis."""
    n = image.shape[axis]
    return torch.cat((image.narrow(axis, n - MARGIN, MARGIN), image, image.narrow(axis, 0, MARGIN)), axis)


def beyond_walls(image: Tensor, axis: int) -> Tensor:
    """An image with margins beyond the walls of an axis, as in a mirror."""
    before, after = image.narrow(axis, 0, MARGIN), image.narrow(axis, image.shape[axis] - MARGIN, MARGIN)
    return torch.cat((before.flip(axis), image, after.flip(axis)), axis)
