"""Compressed sensing."""

from functools import lru_cache
from math import sqrt

import torch
from torch import Tensor

from data.scans.sense import Sense
from mri.models.parts.method import Tunable, sense_flops
from mri.models.parts.solvers import largest_eigenvalue
from mri.models.parts.wavelets import Wavelets

ITERATIONS = 40


class L1Wavelet(Tunable):
    """min_x 1/2 |M F S x - y|^2 + strength |W x|_1 with Daubechies-4 wavelets W, by FISTA.

        r  = x~ - (A^H A x~ - A^H y) / L            L the largest eigenvalue of A^H A, by power iteration
        x' = W^T soft(W r, strength / L)            x' the next x
        x~ = x' + (t - 1) / t' (x' - x)             t' = (1 + sqrt(1 + 4 t^2)) / 2

    K-space comes divided by the standard deviation of the target, so one strength fits every scan.
    """

    any_plane = True
    candidates = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 2e-2, 4e-2, 8e-2, 0.16, 0.32)

    def __init__(
        self,
        plane: tuple[int, int],
        density: Tensor | None = None,
        strength: float = 0.01,
        iterations: int = ITERATIONS,
    ) -> None:
        super().__init__(plane, density, strength)
        self.iterations = iterations

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        measure, real = Sense(maps, mask), maps.dtype.to_real()
        W = _wavelets((kspace.shape[-2], kspace.shape[-1]), real, kspace.device)
        zero_filled = measure.adjoint(kspace)
        step = 1 / largest_eigenvalue(measure.normal, zero_filled).clamp_min(1e-12)
        threshold = step * self.of_echo("strength", echo).to(real)
        image = ahead = torch.zeros_like(zero_filled)
        t = 1.0
        for _ in range(self.iterations):
            moved = ahead + step * (zero_filled - measure.normal(ahead))
            before, image = image, shrunk(moved, W, threshold)
            t, last = (1 + sqrt(1 + 4 * t * t)) / 2, t
            ahead = image + (last - 1) / t * (image - before)
        return image

    def flops(self, coils: int) -> int:
        wavelets = 2 * Wavelets(self.plane).flops(2)
        return self.iterations * (2 * sense_flops(self.plane, coils) + wavelets)


@lru_cache(maxsize=8)
def _wavelets(plane: tuple[int, int], dtype: torch.dtype, device: torch.device) -> Wavelets:
    return Wavelets(plane, dtype, device)


def shrunk(images: Tensor, W: Wavelets, threshold: Tensor) -> Tensor:
    """W^T soft(W x, threshold) of complex images (batch, ky, kz): every coefficient's magnitude less the threshold."""
    coefficients = W(torch.view_as_real(images).movedim(-1, 1))
    size = coefficients.square().sum(1, keepdim=True).sqrt()
    gain = (1 - threshold / size.clamp_min(torch.finfo(size.dtype).tiny)).clamp_min(0)
    real, imaginary = W.adjoint(coefficients * gain).unbind(1)
    return torch.complex(real, imaginary)
