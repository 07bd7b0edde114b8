"""The two products that a spectral layer consists of, arranged for batched matrix multiplication."""

from typing import Any

import torch
from torch import Tensor


class ComplexProduct(torch.autograd.Function):
    """The batched product of complex matrices A (k, m, n) and B (k, n, p).

    torch's own derivative multiplies lazily conjugated matrices, which on a CPU go one by one; conjugated
    beforehand they go as one batch.
    """

    @staticmethod
    def forward(ctx: Any, A: Tensor, B: Tensor) -> Tensor:
        ctx.save_for_backward(A, B)
        return torch.bmm(A, B)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        A, B = ctx.saved_tensors
        gradient = gradient.contiguous()  # it comes permuted, and permuted matrices go one by one, too
        by_A = torch.bmm(gradient, B.conj().mT.resolve_conj()) if ctx.needs_input_grad[0] else None
        by_B = torch.bmm(A.conj().mT.resolve_conj(), gradient) if ctx.needs_input_grad[1] else None
        return by_A, by_B


def complex_product(A: Tensor, B: Tensor) -> Tensor:
    """A B for batches of complex matrices, differentiable.

    >>> A, B = torch.randn(3, 4, 5, dtype=torch.complex64), torch.randn(3, 5, 2, dtype=torch.complex64)
    >>> torch.allclose(complex_product(A, B), A @ B, atol=1e-6)
    True
    """
    product: Tensor = ComplexProduct.apply(A, B)
    return product


def mix_channels(modes: Tensor, weight: Tensor) -> Tensor:
    """For each mode its own channel matrix: modes (k, in, batch), weight (k, out, in, 2) to (k, out, batch)."""
    return complex_product(torch.view_as_complex(weight), modes)
