"""Density compensation: weights that undo how often each frequency is sampled."""

import torch
from torch import Tensor


def compensation(density: Tensor, exponent: Tensor | float) -> Tensor:
    """density^-exponent, and 1 where nothing is ever sampled.

    >>> compensation(torch.tensor([1.0, 0.25, 0.0]), 0.5)
    tensor([1., 2., 1.])
    """
    weights = torch.where(density > 0, density, 1.0).double() ** -torch.as_tensor(exponent).double()
    return weights.to(density.dtype)


def separable_compensation(density: Tensor, exponent: float) -> tuple[Tensor, Tensor]:
    """The weights u (ky) and v (kz) whose product is nearest to density^-exponent, in double precision.

    Nearest in the logarithm, by least squares with each point counted as often as it is sampled; a density
    that is itself a product is met exactly.
    """
    counts = density.double()
    logarithm = torch.where(counts > 0, counts, 1.0).log() * -exponent
    rows, columns = counts.sum(1).clamp_min(1e-12), counts.sum(0).clamp_min(1e-12)
    v = torch.zeros_like(columns)
    u = torch.zeros_like(rows)
    for _ in range(200):  # alternating least squares; each sweep is an exact minimisation
        u = (counts * (logarithm - v)).sum(1) / rows
        v = (counts * (logarithm - u[:, None])).sum(0) / columns
    return u.exp(), v.exp()
