"""Iterative SENSE."""

from itertools import product

import torch
from torch import Tensor

from data.scans.sense import Sense
from mri.models.parts.method import Candidate, Tunable, sense_flops
from mri.models.parts.solvers import conjugate_gradients

STRENGTHS = (1e-4, 1e-3, 3e-3, 1e-2, 2e-2, 4e-2, 8e-2, 0.16)
ITERATIONS = (6, 12, 30)


class CgSense(Tunable):
    """min_x |M F S x - y|^2 + strength |x|^2, by conjugate gradients.

    Stopping early regularises, too: the number of iterations is chosen together with the strength.
    """

    any_plane = True
    candidates = tuple(product(STRENGTHS, ITERATIONS))
    iterations: Tensor

    def __init__(self, plane: tuple[int, int], density: Tensor | None = None, strength: float = 0.01) -> None:
        super().__init__(plane, density, strength)
        self.register_buffer("iterations", torch.tensor([max(ITERATIONS)]))

    def choose(self, candidate: Candidate, echo: int | None = None) -> None:
        for name, value in self.described(candidate).items():
            self.store(name, value, echo)

    def described(self, candidate: Candidate) -> dict[str, float]:
        strength, iterations = candidate  # type: ignore[misc]
        return {"strength": strength, "iterations": iterations}

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        measure, strength = Sense(maps, mask), self.of_echo("strength", echo).to(maps.dtype.to_real())
        return conjugate_gradients(
            lambda x: measure.normal(x) + strength * x,
            measure.adjoint(kspace),
            self.of_echo("iterations", echo),
        )

    def flops(self, coils: int) -> int:
        return 2 * int(self.iterations.max()) * sense_flops(self.plane, coils)
