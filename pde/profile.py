"""Where a forecast is wrong: the error against the distance from the wall, or by latitude."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lab.table import Cell, Column, Score, Table
from pde.evaluate import Evaluation
from pde.results import labels


def error_profile(evaluation: Evaluation) -> tuple[Tensor, Tensor]:
    """Positions and the error there: root mean square over test samples, frames and points, of all fields.

    Each field is measured in units of its spread. The position is the distance from the nearest wall or, on the
    sphere, the latitude in degrees.
    """
    squares, position = _squares(evaluation), evaluation.grid.positions
    places, number = position.unique(return_inverse=True)
    sums = torch.zeros(len(places), dtype=squares.dtype).index_add(0, number.flatten(), squares.flatten())
    return places, (sums / number.flatten().bincount()).sqrt()


def places_table(evaluations: Sequence[Evaluation]) -> Table:
    """The same error in the regions that the geometry has, one row per model; ± over seeds."""
    geometry = evaluations[0].grid.geometry
    regions = geometry.places
    caption = f"Root mean square error over the spread of the field, by {geometry.place}"
    columns = [Column(name, name, digits=3, better="lower") for name in regions]
    table = Table([Column("model", "model"), *columns], caption=caption)
    for label in labels(evaluations):
        row: dict[str, Cell] = {"model": label}
        for name, (low, high) in regions.items():
            errors = [_in_region(e, low, high) for e in evaluations if e.label == label]
            known = [error for error in errors if error is not None]
            row[name] = Score.of(known) if known else None
        table.rows.append(row)
    return table


def _in_region(evaluation: Evaluation, low: float, high: float) -> float | None:
    """The error over a region, None on a grid so coarse that no point lies there."""
    position, weights = evaluation.grid.positions.abs(), evaluation.grid.weights
    inside = ((position >= low) & (position < high)).double()
    if weights is not None:
        inside = inside * weights.double()[:, None]
    area = inside.sum()
    return float(((_squares(evaluation) * inside).sum() / area).sqrt()) if area > 0 else None


def _squares(evaluation: Evaluation) -> Tensor:
    """The mean square error at every point (row, column), in units of the fields' spread."""
    spread = evaluation.truth.flatten(0, 3).std(0)
    return ((evaluation.prediction - evaluation.truth) / spread).square().mean((0, 3, 4))
