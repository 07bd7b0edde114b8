"""Linear algebra on batches of images (batch, ky, kz): every image has a solver's steps of its own."""

from collections.abc import Callable

import torch
from torch import Tensor

Operator = Callable[[Tensor], Tensor]
"""A Hermitian, positive semidefinite map of images, each on its own."""


def inner(one: Tensor, other: Tensor) -> Tensor:
    """The real part of the inner product of each pair of images, (batch, 1, 1)."""
    pairs = torch.view_as_real(one) * torch.view_as_real(other)
    return pairs.sum((-3, -2, -1))[:, None, None]


def conjugate_gradients(
    system: Operator, right: Tensor, iterations: int | Tensor, start: Tensor | None = None
) -> Tensor:
    """The solution x of system(x) = right by conjugate gradients, from `start`, or zero.

    `iterations` is one number, or one for each image: (batch, 1, 1).

    >>> right = torch.randn(2, 3, 4, dtype=torch.complex64)
    >>> torch.allclose(conjugate_gradients(lambda x: 2 * x, right, 1), right / 2)
    True
    """
    x = torch.zeros_like(right) if start is None else start
    residual = right if start is None else right - system(start)
    direction, energy = residual, inner(residual, residual)
    tiny = torch.finfo(energy.dtype).tiny  # an image that is solved exactly stays as it is
    for k in range(int(torch.as_tensor(iterations).max())):
        product = system(direction)
        step = energy / inner(direction, product).clamp_min(tiny)
        if isinstance(iterations, Tensor):
            step = step * (k < iterations)
        x, residual = x + step * direction, residual - step * product
        energy, before = inner(residual, residual), energy
        direction = residual + energy / before.clamp_min(tiny) * direction
    return x


def largest_eigenvalue(operator: Operator, start: Tensor, iterations: int = 10) -> Tensor:
    """The largest eigenvalue of the operator for each image, (batch, 1, 1), by power iteration.

    >>> start = torch.ones(1, 2, 1, dtype=torch.complex64)
    >>> largest_eigenvalue(lambda x: x * torch.tensor([[3.0], [0.5]]), start)
    tensor([[[3.]]])
    """
    x, size = start, inner(start, start).sqrt()
    for _ in range(iterations):
        x = operator(x / size.clamp_min(torch.finfo(size.dtype).tiny))
        size = inner(x, x).sqrt()
    return size
