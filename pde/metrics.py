"""How wrong a forecast is."""

from torch import Tensor


def relative_error(prediction: Tensor, truth: Tensor) -> Tensor:
    """||prediction - truth|| / ||truth|| of each sample, over all axes but the first: the whole block of frames.

    >>> import torch
    >>> relative_error(torch.zeros(2, 4, 4, 3), torch.ones(2, 4, 4, 3))
    tensor([1., 1.])
    """
    return (prediction - truth).flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)


def error_per_frame(prediction: Tensor, truth: Tensor) -> Tensor:
    """The relative error of each sample and frame of (sample, x, y, frame): (sample, frame)."""
    return (prediction - truth).flatten(1, 2).norm(dim=1) / truth.flatten(1, 2).norm(dim=1)
