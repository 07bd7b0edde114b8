"""MoDL: a learned denoiser and conjugate gradients in turn."""

from itertools import pairwise
from math import log, prod
from typing import Any

import torch
from torch import Tensor, nn

from data.scans.sense import Sense
from mri.models.parts.method import Method, sense_flops
from mri.models.parts.solvers import Operator, conjugate_gradients, inner

STRENGTH = 0.05
"""Where the weight of the denoised image starts, beside data whose coil maps have unit sum of squares."""
CG_ITERATIONS = 8


class MoDL(Method):
    """Model-based deep learning (Aggarwal et al. 2019), from x = A^H y, A the measurement:

        z <- x + N(x)                                     one convolutional network N for all iterations
        x <- argmin_x |A x - y|^2 + lambda |x - z|^2      by conjugate gradients

    Gradients pass through the solution itself, by solving the same equations once more, and not through the steps of
    the solver. N sees real and imaginary part of the image in units of its rms at first, and begins near zero, so that
    an untrained method is near iterated Tikhonov regularisation. The original has 64 channels and normalises over the
    batch, which small batches do not allow.

    Options:
        iterations: times that the network and the data take turns.
        channels: feature maps of the network.
        layers: 3 x 3 convolutions of the network.
    """

    any_plane = True

    def __init__(
        self,
        plane: tuple[int, int],
        density: Tensor | None = None,
        *,
        iterations: int = 5,
        channels: int = 32,
        layers: int = 5,
    ) -> None:
        super().__init__(plane, density)
        self.iterations = iterations
        widths = [2, *[channels] * (layers - 1), 2]
        modules: list[nn.Module] = []
        for before, after in pairwise(widths):
            modules += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True)]
        self.network = nn.Sequential(*modules[:-1])
        for parameter in self.network[-1].parameters():
            nn.init.normal_(parameter, std=0.01)
        self.log_strength = nn.Parameter(torch.tensor(log(STRENGTH)))

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        measure = Sense(maps, mask)
        image = zero_filled = measure.adjoint(kspace)
        unit = zero_filled.abs().square().mean((-2, -1), keepdim=True).sqrt().clamp_min(1e-30)
        strength = self.log_strength.exp().expand(len(kspace), 1, 1)
        for _ in range(self.iterations):
            denoised = image + unit * self._noise(image / unit)
            image = regularised(measure.normal, zero_filled, denoised, strength, CG_ITERATIONS)
        return image

    def _noise(self, image: Tensor) -> Tensor:
        found = self.network(torch.view_as_real(image).movedim(-1, 1))
        return torch.complex(found[:, 0], found[:, 1])

    def flops(self, coils: int) -> int:
        weights = sum(parameter.numel() for parameter in self.network.parameters() if parameter.ndim > 1)
        solving = 2 * (1 + CG_ITERATIONS) * sense_flops(self.plane, coils)
        return sense_flops(self.plane, coils) + self.iterations * (2 * weights * prod(self.plane) + solving)


def regularised(
    normal: Operator, zero_filled: Tensor, prior: Tensor, strength: Tensor, iterations: int
) -> Tensor:
    """The x with (A^H A + strength) x = A^H y + strength prior, by conjugate gradients from the prior.

    `normal` is A^H A, `zero_filled` A^H y; strength is (batch, 1, 1).
    """
    solution: Tensor = _Solution.apply(normal, zero_filled + strength * prior, strength, prior, iterations)
    return solution


class _Solution(torch.autograd.Function):
    """x = Q^-1 b with Q = A^H A + strength, from where to start. With u = Q^-1 g for the gradient g of x,

    the gradient of b is u, and that of the strength - Re <u, x>.
    """

    @staticmethod
    def forward(
        ctx: Any, normal: Operator, right: Tensor, strength: Tensor, start: Tensor, iterations: int
    ) -> Tensor:
        solution = conjugate_gradients(lambda x: normal(x) + strength * x, right, iterations, start)
        ctx.normal, ctx.iterations = normal, iterations
        ctx.save_for_backward(strength, solution)
        return solution

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        strength, solution = ctx.saved_tensors
        solved = conjugate_gradients(lambda x: ctx.normal(x) + strength * x, grads[0], ctx.iterations)
        return None, solved, -inner(solved, solution), None, None
