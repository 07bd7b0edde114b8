"""How wrong a forecast is. Fields are (sample, row, column, frame, field); `weights` are those of the rows."""

from torch import Tensor


def relative_error(prediction: Tensor, truth: Tensor, weights: Tensor | None = None) -> Tensor:
    """||prediction - truth|| / ||truth|| of each sample, over all axes but the first: the whole block of frames.

    With the quadrature weights of a grid, ||u||^2 = sum of w |u|^2, the integral over the domain.

    >>> import torch
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


def _weighted(fields: Tensor, weights: Tensor | None) -> Tensor:
    return fields if weights is None else fields * weights.sqrt().view(-1, *(1,) * (fields.ndim - 2))
