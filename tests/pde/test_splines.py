"""Splines against scipy, and against the series of waves that they go through."""

from math import pi

import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates
from torch import Tensor

from data.fields.geometry import Box
from pde.models.options import Parity
from pde.models.parts.splines import MARGIN, Degree, spline_around, spline_values, upsampling
from pde.models.parts.transport import Plane

pytestmark = pytest.mark.usefixtures("double_precision")


def around(coefficients: Tensor) -> Tensor:
    return torch.nn.functional.pad(coefficients, (MARGIN,) * 4, mode="circular")


def spline(values: Tensor) -> Tensor:
    """Coefficients of periodic values (batch, channel, row, column), with a margin."""
    rows, columns = values.shape[-2:]
    return around(spline_around(rows) @ values @ spline_around(columns).mT)


def test_a_spline_passes_through_its_points() -> None:
    values = torch.randn(2, 3, 9, 12)
    row, column = torch.meshgrid(torch.arange(9.0), torch.arange(12.0), indexing="ij")
    places = torch.stack((row, column), -1).expand(2, -1, -1, -1) + MARGIN
    assert (spline_values(spline(values), places) - values.permute(0, 2, 3, 1)).abs().max() < 1e-12


def test_a_periodic_spline_is_that_of_scipy() -> None:
    values = torch.randn(9, 12)
    row, column = 9 * torch.rand(40, 7), 12 * torch.rand(40, 7)
    made = spline_values(spline(values[None, None]), torch.stack((row, column), -1)[None] + MARGIN)
    expected = map_coordinates(values.numpy(), [row.numpy(), column.numpy()], order=3, mode="grid-wrap")
    assert np.abs(made[0, ..., 0].numpy() - expected).max() < 1e-12


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("parity", ["even", "odd"])
def test_between_walls_a_spline_goes_through_the_series_of_cosines_or_sines(
    parity: Parity, degree: Degree
) -> None:
    """Twice the domain, mirrored, is a torus, on which the series is that of Fourier and scipy has the spline."""
    values, sign = torch.randn(9, 12), 1 if parity == "even" else -1
    whole = torch.cat((values, sign * values.flip(0)))
    whole = torch.cat((whole, sign * whole.flip(1)), 1)
    # Points of the torus lie half a step from the wall; twice as many are there and in the middles between them.
    finer = upsampling(18) @ whole @ upsampling(24).mT
    row, column = 9 * torch.rand(1, 9, 12) - 0.5, 12 * torch.rand(1, 9, 12) - 0.5
    plane = Plane((9, 12), Box("walls", "walls"), parity, degree=degree)
    made = plane.sample(values[None, ..., None], torch.stack((row, column), -1))
    places = [2 * row[0].numpy(), 2 * column[0].numpy()]
    expected = map_coordinates(finer.numpy(), places, order=degree, mode="grid-wrap")
    assert np.abs(made[0, ..., 0].numpy() - expected).max() < 1e-10


@pytest.mark.parametrize(("degree", "through"), [(1, 1), (1, 2), (3, 1), (3, 2)])
def test_on_a_torus_a_spline_goes_through_the_fourier_series(degree: Degree, through: int) -> None:
    values, turns = torch.randn(9, 12), torch.randint(-2, 3, (2, 1, 9, 12))
    row, column = 9 * torch.rand(1, 9, 12), 12 * torch.rand(1, 9, 12)
    places = torch.stack((row + 9 * turns[0], column + 12 * turns[1]), -1)  # any number of times around
    made = Plane((9, 12), Box(), through=through, degree=degree).sample(values[None, ..., None], places)
    finer = upsampling(9, through) @ values @ upsampling(12, through).mT
    at = [through * row[0].numpy(), through * column[0].numpy()]
    expected = map_coordinates(finer.numpy(), at, order=degree, mode="grid-wrap")
    assert np.abs(made[0, ..., 0].numpy() - expected).max() < 1e-10


def test_a_spline_is_of_fourth_order_between_its_points() -> None:
    def waves(x: Tensor, y: Tensor) -> Tensor:
        return torch.cos(2 * pi * (3 * x + y)) + torch.sin(2 * pi * (x - 4 * y) + 0.3)

    x, y = torch.rand(2, 1, 50, 50)
    errors = []
    for n in (48, 96):
        points = torch.arange(float(n)) / n
        coefficients = spline(waves(points[:, None], points)[None, None])
        made = spline_values(coefficients, n * torch.stack((x, y), -1) + MARGIN)[..., 0]
        errors.append(float((made - waves(x, y)).square().mean().sqrt()))
    assert 13 < errors[0] / errors[1] < 19


@pytest.mark.parametrize("n", [8, 9])
def test_twice_as_many_points_are_on_the_fourier_series(n: int) -> None:
    x, finer = torch.arange(float(n)) / n, torch.arange(2.0 * n) / (2 * n)

    def series(t: Tensor) -> Tensor:
        return 1 + torch.sin(2 * pi * 3 * t) - torch.cos(2 * pi * t)

    assert (upsampling(n) @ series(x) - series(finer)).abs().max() < 1e-12
    assert upsampling(n)[::2].allclose(torch.eye(n), atol=1e-12)
