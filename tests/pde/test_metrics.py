"""How wrong a forecast is, and where."""

import numpy as np
import pytest
import torch

from data.fields.geometry import Box, Line, Sphere
from data.fields.layout import Grid
from data.fields.spectrum import shell_energies
from monarch_core.transforms.sphere import quadrature
from pde.metrics import (
    correlation_per_frame,
    correlation_time,
    error_by_band,
    error_by_region,
    error_per_frame,
    error_profile,
    relative_error,
    sample_metrics,
    squares_by_point,
)

WALLS = Box("walls", "walls")


def test_error_is_that_of_the_whole_block() -> None:
    truth = torch.zeros(1, 1, 1, 2, 1)
    truth[..., 0, :], truth[..., 1, :] = 3.0, 4.0
    prediction = torch.zeros_like(truth)
    prediction[..., 1, :] = 4.0
    assert torch.allclose(relative_error(prediction, truth), torch.tensor([3 / 5]))
    assert torch.allclose(error_per_frame(prediction, truth), torch.tensor([[1.0, 0.0]]))


def test_weighted_error_is_the_integral_over_the_sphere() -> None:
    theta, weights = quadrature("legendre-gauss", 12)
    truth = torch.ones(1, 12, 5, 1, 1, dtype=torch.float64)
    prediction = 1 + torch.cos(theta).view(1, 12, 1, 1, 1) * truth
    error = relative_error(prediction, truth, weights / weights.mean())
    assert float(error) == pytest.approx(3**-0.5, abs=1e-12)  # the mean of cos^2 over a sphere is a third
    assert torch.allclose(error_per_frame(prediction, truth, weights), error[:, None])


def test_profile_finds_the_error_at_the_wall() -> None:
    truth = torch.randn(4, 8, 8, 3, 1)
    wrong = torch.zeros_like(truth)
    wrong[:, 0], wrong[:, -1], wrong[:, :, 0], wrong[:, :, -1] = 2.0, 2.0, 2.0, 2.0
    places, errors = error_profile(squares_by_point(truth + wrong, truth), Grid.of(WALLS, 8))
    assert places.tolist() == pytest.approx([0.0625, 0.1875, 0.3125, 0.4375])
    assert errors.tolist() == pytest.approx([2.0 / float(truth.std()), 0.0, 0.0, 0.0], rel=1e-5)


def test_profile_of_the_sphere_goes_by_latitude() -> None:
    theta = torch.tensor([0.3, 1.2, 1.9, 2.8])
    truth = torch.randn(4, 4, 8, 3, 2)
    wrong = torch.zeros_like(truth)
    wrong[:, 0] = truth.flatten(0, 3).std(0)  # the northernmost row
    grid = Grid(Sphere(), theta, torch.arange(8.0))
    places, errors = error_profile(squares_by_point(truth + wrong, truth), grid)
    assert places.tolist() == pytest.approx([90 - 180 / torch.pi * t for t in (2.8, 1.9, 1.2, 0.3)], abs=1e-3)
    assert errors.tolist() == pytest.approx([0.0, 0.0, 0.0, 1.0], rel=1e-5)


def test_regions_lie_along_the_walls() -> None:
    truth = torch.randn(2, 32, 32, 3, 1)
    wrong = torch.zeros_like(truth)
    wrong[:, :2] = 1.0  # two of the lines next to one wall of four: 64 points of the 240 within 1/16
    found = error_by_region(squares_by_point(truth + wrong, truth), Grid.of(WALLS, 32))
    once = (64 / 240) ** 0.5 / float(truth.std())
    assert list(found.values()) == pytest.approx([once, 0.0, 0.0], rel=1e-5)


def test_regions_of_the_sphere_are_weighted_by_their_area() -> None:
    _, weights = quadrature("legendre-gauss", 12)
    truth = torch.randn(2, 12, 24, 1, 1)
    wrong = torch.zeros_like(truth)
    wrong[:, 1] = 1.0  # of two latitudes beyond 60 degrees in each hemisphere, the inner one of the north
    found = error_by_region(squares_by_point(truth + wrong, truth), Grid.of(Sphere(), 12, 24))
    share = float(weights[1] / (2 * weights[:2].sum())) ** 0.5
    assert list(found.values()) == pytest.approx([share / float(truth.std()), 0.0, 0.0], rel=1e-5)


@pytest.mark.parametrize(
    "grid",
    [Grid.of(Sphere("equiangular"), 13, 24), Grid.of(Sphere(), 12, 24), Grid.of(WALLS, 32)],
    ids=["with poles", "without poles", "walls"],
)
def test_every_point_belongs_to_one_region(grid: Grid) -> None:
    found = [
        (grid.positions.abs() >= low) & (grid.positions.abs() < high)
        for low, high in grid.geometry.places.values()
    ]
    assert (torch.stack(found).sum(0) == 1).all()


def test_a_coarse_grid_may_have_no_point_in_a_region() -> None:
    found = error_by_region(torch.ones(4, 4), Grid.of(WALLS, 4))
    assert found["within 1/16 of a wall"] is None
    assert found["1/16 to 1/4"] == pytest.approx(1.0)


def pdebench(prediction: torch.Tensor, truth: torch.Tensor) -> dict[str, float]:
    """PDEBench's scores by loops over samples, frames, fields and frequencies; a line has one column."""
    samples, rows, columns, frames, fields = truth.shape
    line, found = columns == 1, dict.fromkeys(("rmse", "nrmse", "boundary"), 0.0)
    half = (rows // 2 + 1) if line else min(rows, columns) // 2
    shells = torch.zeros(half, frames, fields, dtype=torch.float64)
    for i in range(samples):
        for t in range(frames):
            for f in range(fields):
                true, wrong = truth[i, ..., t, f], prediction[i, ..., t, f] - truth[i, ..., t, f]
                found["rmse"] += float((wrong**2).mean().sqrt())
                found["nrmse"] += float((wrong**2).mean().sqrt() / (true**2).mean().sqrt())
                ends = float((wrong[0] ** 2 + wrong[-1] ** 2).sum())
                sides = 0.0 if line else float((wrong[:, 0] ** 2 + wrong[:, -1] ** 2).sum())
                count = 2 if line else 2 * rows + 2 * columns
                found["boundary"] += ((ends + sides) / count) ** 0.5
                waves = torch.fft.fft2(wrong).abs() ** 2
                for k in range(rows // 2 + 1 if line else rows // 2):
                    for l in range(1 if line else columns // 2):
                        if (shell := int((k * k + l * l) ** 0.5)) < half:
                            shells[shell, t, f] += waves[k, l] / samples
    found = {name: total / (samples * frames * fields) for name, total in found.items()}
    roots = shells.sqrt() / (rows * columns)
    bands = {"low": roots[:4], "middle": roots[4:12], "high": roots[12:]}
    return found | {name: float(band.mean()) for name, band in bands.items()}


@pytest.mark.parametrize("shape", [(3, 26, 30, 2, 2), (3, 32, 1, 2, 2)])
def test_scores_are_those_of_pdebench_and_the_well(shape: tuple[int, ...]) -> None:
    truth = torch.randn(shape, dtype=torch.float64) + 0.3
    prediction = truth + 0.1 * torch.randn(shape, dtype=torch.float64)
    grid = Grid.of(Line() if shape[2] == 1 else Box(), *shape[1:3])
    ours = sample_metrics(prediction, truth, grid)
    means = {name: float(values.mean()) for name, values in ours.items()}
    bands = error_by_band(shell_energies(prediction - truth).mean(0), shape[1] * shape[2])
    for name, expected in pdebench(prediction, truth).items():
        assert (means | bands)[name] == pytest.approx(expected, rel=1e-10), name
    square, spread = (prediction - truth).square().mean((1, 2)), truth.flatten(1, 2).std(1)
    assert means["vrmse"] == pytest.approx(float((square / (spread**2 + 1e-7)).sqrt().mean()), rel=1e-9)
    assert ours["maximum"].tolist() == [
        (a - b).abs().max().item() for a, b in zip(prediction, truth, strict=True)
    ]


def test_scores_of_a_sphere_are_integrals_and_have_no_boundary() -> None:
    grid = Grid.of(Sphere(), 12, 24)
    height = torch.cos(grid.rows).view(1, 12, 1, 1, 1).expand(1, 12, 24, 1, 1).double()
    found = sample_metrics(2 * height, height, grid)
    assert float(found["rmse"]) == pytest.approx(3**-0.5, rel=1e-6)
    assert float(found["nrmse"]) == pytest.approx(1.0, rel=1e-6)
    assert "boundary" not in found


def test_correlation_is_pearsons_of_each_frame() -> None:
    truth, prediction = torch.randn(2, 3, 8, 6, 4, 1, dtype=torch.float64) + 5
    found = correlation_per_frame(prediction, truth)
    expected = [
        [
            np.corrcoef(prediction[s, ..., t, 0].flatten(), truth[s, ..., t, 0].flatten())[0, 1]
            for t in range(4)
        ]
        for s in range(3)
    ]
    assert np.abs(found.numpy() - expected).max() < 1e-12
    assert torch.allclose(correlation_per_frame(3 * truth - 7, truth), torch.ones(3, 4, dtype=torch.float64))


def test_correlation_on_a_sphere_is_that_of_the_integral() -> None:
    """1 + 2 cos and 5 - cos are opposite about their means over the sphere, whatever the latitudes."""
    theta, weights = quadrature("equiangular", 12)
    wave = torch.cos(theta).view(1, 12, 1, 1, 1).expand(1, 12, 4, 1, 1)
    assert correlation_per_frame(1 + 2 * wave, 5 - wave, weights) == pytest.approx(-1.0, abs=1e-12)


def test_a_forecast_that_blew_up_is_not_correlated() -> None:
    truth = torch.randn(1, 4, 4, 2, 1)
    wrong = truth.clone()
    wrong[..., 1, :] = float("nan")
    found = correlation_per_frame(wrong, truth)
    assert found[0].tolist() == pytest.approx([1.0, 0.0])
    assert correlation_time(found.tolist(), 0.8) == [1]
