"""SENSE with density compensation: the fixed reweighting of frequencies that mSENSE has to beat."""

import torch
from torch import Tensor

from data.scans.sense import Sense
from mri.models.method import Tunable, sense_flops


class DcSense(Tunable):
    """x = sum_c conj(S_c) F^H (d^-p y_c) with the sampling density d (ky, kz), the mean of many masks.

    p = 0 is SENSE; p = 1 gives every frequency the weight it has on average in the full data.
    """

    candidates = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    density: Tensor

    def __init__(self, plane: tuple[int, int], density: Tensor | None = None, strength: float = 0.5) -> None:
        super().__init__(plane, strength)
        self.register_buffer("density", torch.ones(self.plane) if density is None else density.float())

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        return Sense(maps, compensation(self.density, self.strength)).adjoint(kspace)

    def flops(self, coils: int) -> int:
        return sense_flops(self.plane, coils) + 2 * coils * self.density.numel()


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
