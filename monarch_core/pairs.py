"""Complex numbers as pairs of real ones, (re, im) on a last axis of 2, and the product of matrices of them.

Pairs work where complex tensors do not: in bfloat16, in exported graphs, on devices without complex kernels. On a CPU
complex kernels are faster, so there `product` and `rearranged` see the same memory as complex numbers; wherever
`complex_kernels` says no, they multiply and copy real numbers, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from .multiply import is_traced

_real_only = False


@contextmanager
def real_arithmetic() -> Iterator[None]:
    """Within this context nothing here calls a complex kernel.

    >>> with real_arithmetic():
    ...     complex_kernels(torch.ones(2))
    False
    """
    global _real_only
    before, _real_only = _real_only, True
    try:
        yield
    finally:
        _real_only = before


def complex_kernels(x: Tensor) -> bool:
    """Whether pairs like x are multiplied and copied as complex numbers: on a CPU, unless something forbids it."""
    return not (
        _real_only
        or x.device.type != "cpu"
        or x.dtype not in (torch.float32, torch.float64)
        or torch.is_autocast_enabled("cpu")
        or torch.compiler.is_compiling()
    )


def product(A: Tensor, B: Tensor) -> Tensor:
    """A B for batches of complex matrices in pairs: (k, m, n, 2) and (k, n, p, 2) to (k, m, p, 2).

    >>> A, B = torch.randn(3, 4, 5, 2), torch.randn(3, 5, 6, 2)
    >>> expected = torch.view_as_complex(A) @ torch.view_as_complex(B)
    >>> torch.allclose(product(A, B), torch.view_as_real(expected), atol=1e-5)
    True
    """
    # Asking autocast about the meta device is an error.
    if traced() or A.is_meta or torch.is_autocast_enabled(A.device.type):
        return _product(A, B, complex_kernels(A))
    made: Tensor = _Product.apply(A, B, complex_kernels(A))  # type: ignore[no-untyped-call]
    return made


def adjoint(A: Tensor) -> Tensor:
    """The conjugate transposes of matrices in pairs, (..., m, n, 2) to (..., n, m, 2)."""
    re, im = A.transpose(-3, -2).unbind(-1)
    return torch.stack((re, -im), -1)


def rearranged(x: Tensor, have: str, want: str, **sizes: int) -> Tensor:
    """Pairs whose axes are `have`, a letter each of that size, as contiguous pairs with the axes `want`.

    >>> rearranged(torch.zeros(6, 5, 2), "abc", "cab", a=2, b=3, c=5).shape
    torch.Size([5, 2, 3, 2])
    """
    shape, order = [sizes[letter] for letter in have], [have.index(letter) for letter in want]
    if not complex_kernels(x):
        return x.reshape(*shape, 2).permute(*order, len(order)).contiguous()
    # The axes are split behind the complex view, so that a gradient, too, is copied a pair at a time.
    return torch.view_as_real(torch.view_as_complex(x.contiguous()).view(shape).permute(order).contiguous())


def from_complex(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """A complex tensor as pairs of the given real dtype, or of torch's default."""
    pairs = torch.view_as_real(x.to(torch.complex128).resolve_conj().contiguous())
    return pairs.to(torch.get_default_dtype() if dtype is None else dtype).clone()


def real_part_matrix(B: Tensor) -> Tensor:
    """The real matrix (k, 2 n, p) that takes a row of pairs z to Re(z B), for B (k, n, p, 2)."""
    re, im = B.unbind(-1)
    return torch.stack((re, -im), 2).flatten(1, 2)


def traced() -> bool:
    """Whether torch.compile, torch.export, torch.jit or torch.func looks on: they see through plain operations alone.

    (A Function that torch.func understands would cost each call more than some of these products take.)
    """
    return torch.compiler.is_compiling() or is_traced() or torch._C._are_functorch_transforms_active()


def _real_product(A: Tensor, B: Tensor) -> Tensor:
    # (a_re, a_im) times [[b_re, b_im], [-b_im, b_re]]: the rows of A are such pairs as they stand.
    re, im = B.unbind(-1)
    doubled = torch.stack((B, torch.stack((-im, re), -1)), 2).flatten(3).flatten(1, 2)
    return torch.bmm(A.flatten(2), doubled).reshape(*A.shape[:2], -1, 2)


def _product(A: Tensor, B: Tensor, complex: bool) -> Tensor:
    if complex:
        return torch.view_as_real(torch.bmm(torch.view_as_complex(A), torch.view_as_complex(B)))
    return _real_product(A, B)


class _Product(Function):
    """torch's own derivative multiplies lazily conjugated and permuted matrices, which on a CPU go one by one;
    conjugated and copied beforehand they go as one batch."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, B: Tensor, complex: bool) -> Tensor:
        ctx.save_for_backward(A, B)
        ctx.save_for_forward(A, B)
        ctx.complex = complex
        return _product(A, B, complex)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        A, B = ctx.saved_tensors
        gradient = gradient.contiguous()
        by_A = by_B = None
        if ctx.complex:
            gradient, A, B = (torch.view_as_complex(t) for t in (gradient, A, B))
            if ctx.needs_input_grad[0]:
                by_A = torch.view_as_real(torch.bmm(gradient, B.mH.resolve_conj()))
            if ctx.needs_input_grad[1]:
                by_B = torch.view_as_real(torch.bmm(A.mH.resolve_conj(), gradient))
        else:
            by_A = _real_product(gradient, adjoint(B)) if ctx.needs_input_grad[0] else None
            by_B = _real_product(adjoint(A), gradient) if ctx.needs_input_grad[1] else None
        return by_A, by_B, None

    @staticmethod
    def jvp(ctx: Any, by_A: Tensor | None, by_B: Tensor | None, _: None) -> Tensor:
        A, B = ctx.saved_tensors
        of_A = None if by_A is None else _product(by_A.contiguous(), B, ctx.complex)
        of_B = None if by_B is None else _product(A, by_B.contiguous(), ctx.complex)
        return sum(part for part in (of_A, of_B) if part is not None)  # type: ignore[return-value]
