"""SENSE with density compensation: the fixed reweighting of frequencies that mSENSE is compared with."""

import torch
from torch import Tensor

from mri.models.parts.acquired import interpolated
from mri.models.parts.method import Tunable, sense_flops


class DcSense(Tunable):
    """x = sum_c conj(S_c) F^H (d^-p y_c) with the sampling density d (ky, kz) and the strength p of the echo.

    p = 0 is SENSE; p = 1 gives every frequency the weight it has on average in the full data. Slices of another size
    than that of d meet its weights interpolated, relative to the highest frequency.
    """

    any_plane = True
    needs_density = True
    not_in_pairs_because = None
    candidates = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

    def __init__(self, plane: tuple[int, int], density: Tensor | None = None, strength: float = 0.5) -> None:
        super().__init__(plane, density, strength)
        self.register_buffer("density", self.density, persistent=True)  # the weights file needs it too

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        weights = compensation(self.density, self.of_echo("strength", echo))
        if mask.shape[-2:] != weights.shape[-2:]:
            weights = interpolated(weights, (mask.shape[-2], mask.shape[-1]))
        return self.measurement(maps, weights).adjoint(kspace)

    def flops(self, coils: int) -> int:
        return sense_flops(self.plane, coils) + 2 * coils * self.density.numel()


def compensation(density: Tensor, exponent: Tensor | float) -> Tensor:
    """density^-exponent, and 1 where nothing is ever sampled.

    >>> compensation(torch.tensor([1.0, 0.25, 0.0]), 0.5)
    tensor([1., 2., 1.])
    """
    weights = torch.where(density > 0, density, 1.0).double() ** -torch.as_tensor(exponent).double()
    return weights.to(density.dtype)
