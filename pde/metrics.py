"""How wrong a forecast is. Fields are (sample, row, column, frame, field); `weights` are those of the rows."""

from collections.abc import Sequence

import torch
from torch import Tensor

from data.fields.layout import Grid


def relative_error(prediction: Tensor, truth: Tensor, weights: Tensor | None = None) -> Tensor:
    """||prediction - truth|| / ||truth|| of each sample, over all axes but the first: the whole block of frames.

    With the quadrature weights of a grid, ||u||^2 = sum of w |u|^2, the integral over the domain.

    >>> relative_error(torch.zeros(2, 4, 4, 3), torch.ones(2, 4, 4, 3))
    tensor([1., 1.])
    """
    wrong, truth = _weighted(prediction - truth, weights), _weighted(truth, weights)
    return wrong.flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)


def error_per_frame(prediction: Tensor, truth: Tensor, weights: Tensor | None = None) -> Tensor:
    """The relative error of each sample and frame, over rows, columns and fields: (sample, frame)."""
    wrong, truth = _weighted(prediction - truth, weights), _weighted(truth, weights)
    sides = (part.transpose(3, 4).flatten(1, 3).norm(dim=1) for part in (wrong, truth))
    return next(sides) / next(sides)


def correlation_per_frame(prediction: Tensor, truth: Tensor, weights: Tensor | None = None) -> Tensor:
    """The correlation of forecast and truth in each sample and frame, (sample, frame): the mean over the fields.

    Each field is taken about its mean over the domain. What is not finite, as of a forecast that blew up, is 0.
    """
    sides = []
    for part in (prediction, truth):
        area = torch.ones(part.shape[1]) if weights is None else weights
        area = (area / (area.sum() * part.shape[2])).to(part).view(-1, 1, 1, 1)
        about = part - (part * area).sum((1, 2), keepdim=True)
        sides.append(about * area.sqrt())
    both, *squares = (
        (a * b).sum((1, 2)) for a, b in ((sides[0], sides[1]), (sides[0],) * 2, (sides[1],) * 2)
    )
    return (both / (squares[0] * squares[1]).sqrt()).nan_to_num(0.0, 0.0, 0.0).mean(-1)


def correlation_time(correlations: Sequence[Sequence[float]], level: float) -> list[int]:
    """How many frames of each sample (sample, frame) come before the correlation first falls below `level`.

    A sample that stays above it counts with all its frames.

    >>> correlation_time([[1.0, 0.9, 0.7, 0.9], [1.0, 1.0, 1.0, 1.0]], 0.8)
    [2, 4]
    """
    return [
        next((frame for frame, value in enumerate(frames) if value < level), len(frames))
        for frames in correlations
    ]


METRICS = {
    "rmse": "RMSE",
    "nrmse": "nRMSE",
    "vrmse": "VRMSE",
    "boundary": "boundary RMSE",
    "maximum": "maximum error",
}
"""Scores of a sample beside its relative error, and their titles."""

BANDS = {"low": (0, 4), "middle": (4, 12), "high": (12, None)}
"""Shells of frequencies from, and up to but without, of which PDEBench takes the mean."""

TINY = 1e-7
"""Keeps the variance of a field that is the same everywhere above zero, as The Well does."""


def sample_metrics(prediction: Tensor, truth: Tensor, grid: Grid) -> dict[str, Tensor]:
    """The scores in `METRICS` of each sample: those of PDEBench, and VRMSE of The Well.

        rmse      sqrt(mean |error|^2)                      over space; then the mean over frames and fields
        nrmse     the same over sqrt(mean |truth|^2)        of the same frame and field
        vrmse     the same over sqrt(variance of the truth + 1e-7)
        boundary  the same as rmse, over the first and last row and column alone (corners count twice); on a line, over
                  its two ends
        maximum   max |error|, over everything

    On a sphere means are weighted by area, and there is no boundary.
    """
    weights = None if grid.weights is None else grid.weights.to(truth)
    error = prediction - truth
    square = _mean(error.square(), weights)
    power, mean = _mean(truth.square(), weights), _mean(truth, weights)
    points = truth.shape[1] * truth.shape[2]
    variance = (power - mean.square()) * (points / (points - 1) if weights is None else 1.0)
    found = {
        "rmse": square.sqrt(),
        "nrmse": (square / power).sqrt(),
        "vrmse": (square / (variance.clamp(min=0) + TINY)).sqrt(),
    }
    if weights is None:
        edges = [error[:, [0, -1]].square().flatten(1, 2)]
        edges += [error[:, :, [0, -1]].square().flatten(1, 2)] if "y" in grid.geometry.axes else []
        found["boundary"] = torch.cat(edges, 1).mean(1).sqrt()
    scores = {name: values.mean((1, 2)) for name, values in found.items()}
    return scores | {"maximum": error.abs().flatten(1).amax(1)}


def error_by_band(shells: Tensor, points: int) -> dict[str, float | None]:
    """The root mean square error by frequency as PDEBench defines it, from squares (shell, frame, field).

    shells: mean over samples of `shell_energies` of the error. The root of each shell, over the number of points, is
    averaged over the shells of a band, frames and fields. None where a coarse grid has no such shell.
    """
    roots = shells.sqrt() / points
    bands = {name: roots[slice(*band)] for name, band in BANDS.items()}
    return {name: float(band.mean()) if len(band) else None for name, band in bands.items()}


def _mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """The mean over space of (sample, row, column, frame, field)."""
    return values.mean((1, 2)) if weights is None else (values.mean(2) * weights[:, None, None]).mean(1)


def squares_by_point(prediction: Tensor, truth: Tensor, spread: Tensor | None = None) -> Tensor:
    """The mean square error at every point (row, column), each field in units of its spread, that of the truth."""
    spread = truth.flatten(0, 3).std(0) if spread is None else spread
    return ((prediction - truth) / spread).square().mean((0, 3, 4))


def error_profile(squares: Tensor, grid: Grid) -> tuple[Tensor, Tensor]:
    """Places, as the geometry measures them, and the root mean square error there."""
    places, number = grid.positions.unique(return_inverse=True)
    sums = torch.zeros(len(places), dtype=squares.dtype).index_add(0, number.flatten(), squares.flatten())
    return places, (sums / number.flatten().bincount()).sqrt()


def error_by_region(squares: Tensor, grid: Grid) -> dict[str, float | None]:
    """The root mean square error in each region that the geometry names; None where a coarse grid has no point."""
    found: dict[str, float | None] = {}
    for name, (low, high) in grid.geometry.places.items():
        inside = ((grid.positions.abs() >= low) & (grid.positions.abs() < high)).double()
        if grid.weights is not None:
            inside = inside * grid.weights.double()[:, None]
        area = inside.sum()
        found[name] = float(((squares * inside).sum() / area).sqrt()) if area > 0 else None
    return found


def _weighted(fields: Tensor, weights: Tensor | None) -> Tensor:
    return fields if weights is None else fields * weights.sqrt().view(-1, *(1,) * (fields.ndim - 2))
