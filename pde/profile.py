"""Where a forecast is wrong: the error against the distance from the wall, or by latitude."""

import torch
from torch import Tensor

from pde.evaluate import Evaluation


def error_profile(evaluation: Evaluation) -> tuple[Tensor, Tensor]:
    """Positions and the error there: root mean square over test samples, frames and points, of all fields.

    Each field is measured in units of its spread. The position is the distance from the nearest wall or, on the
    sphere, the latitude in degrees.
    """
    spread = evaluation.truth.flatten(0, 3).std(0)
    squares = ((evaluation.prediction - evaluation.truth) / spread).square().mean((0, 3, 4))
    position = _positions(evaluation)
    places, number = position.unique(return_inverse=True)
    sums = torch.zeros(len(places), dtype=squares.dtype).index_add(0, number.flatten(), squares.flatten())
    return places, (sums / number.flatten().bincount()).sqrt()


def _positions(evaluation: Evaluation) -> Tensor:
    """The position of every point (row, column), rounded so that equal distances are equal."""
    rows, columns = evaluation.domain.rows, evaluation.domain.columns
    if evaluation.problem.sphere:
        return (90 - rows.rad2deg()).round(decimals=6)[:, None].expand(-1, len(columns))
    x, y = torch.minimum(rows, 1 - rows), torch.minimum(columns, 1 - columns)
    return torch.minimum(x[:, None], y).round(decimals=9)
