"""How wrong a prediction is."""

from torch import Tensor


def relative_error(prediction: Tensor, truth: Tensor) -> Tensor:
    """||prediction - truth|| / ||truth|| of each sample."""
    return (prediction - truth).norm(dim=-1) / truth.norm(dim=-1)
