"""Structured families of the paper's Proposition 3.2 that start from given diagonals, and Kronecker products."""

from __future__ import annotations

import torch
from torch import Tensor

from ..checks import tensor, whole
from ..linear_operator import LinearOperator, checked_dtype, dtype_of
from ..monarch import Monarch
from ..reordering import Permutation
from ..sizes import Blocks, composite_size
from ..transforms.fourier_factors import fourier_blocks, fourier_monarch, stride_order
from ..transforms.trigonometric import trigonometric_spec
from ..transforms.twisted_dft import Norm, norm_gain


def kronecker(A: Tensor, B: Tensor, *, dtype: torch.dtype | None = None) -> Monarch:
    """A (x) B, a Monarch matrix in which all blocks of R are B and all blocks of L are A.

    >>> A, B = torch.rand(3, 2), torch.rand(4, 5)
    >>> torch.allclose(kronecker(A, B).to_dense(), torch.kron(A, B))
    True
    """
    A, B = (tensor(factor, "a factor of a Kronecker product", axes=2) for factor in (A, B))
    R = B[None, :, None, :].expand(A.shape[1], -1, -1, -1)
    L = A[None, :, :, None].expand(B.shape[0], -1, -1, -1)
    dtype = checked_dtype(dtype or dtype_of(A, B), A.is_complex() or B.is_complex(), "this Kronecker product")
    return Monarch.from_factors(R.to(dtype), L.to(dtype))


def identity(
    n: int, *, blocks: Blocks | None = None, pad: bool = False, dtype: torch.dtype | None = None
) -> Monarch:
    """The identity as a trainable Monarch matrix: every block of R and L is one."""
    if n == 2 and pad and blocks is None:
        blocks = (1, 2)  # the next composite size, 4, is two blocks away
    size = composite_size(n, pad) if blocks is None else n
    K, J = fourier_blocks(size, blocks, what="the identity of size")
    padded = kronecker(torch.eye(K), torch.eye(J), dtype=checked_dtype(dtype, False, "the identity"))
    return Monarch.from_factors(*padded.factors(), n, n)


def hadamard(
    n: int,
    *,
    norm: Norm | None = "backward",
    blocks: Blocks | None = None,
    dtype: torch.dtype | None = None,
) -> Monarch:
    """The Hadamard matrix of Sylvester's order, as scipy.linalg.hadamard: one Monarch matrix, no permutation.

    H_n = H_K (x) H_J for any K J = n, a power of two.

    >>> hadamard(4).to_dense()[1].tolist()
    [1.0, -1.0, 1.0, -1.0]
    """
    n = whole(n, "the size of a Hadamard operator")
    if n < 4 or n & (n - 1):
        raise ValueError(
            f"a Hadamard operator needs a size 4, 8, 16, ...; got {n}. Pad to the next power of two."
        )
    K, J = fourier_blocks(n, blocks, what="a Hadamard operator of size")
    if K & (K - 1):
        raise ValueError(f"the blocks of a Hadamard operator are powers of two; got ({K}, {J}).")
    half = norm_gain(norm, n) ** 0.5
    return kronecker(
        half * _sylvester(K), half * _sylvester(J), dtype=checked_dtype(dtype, False, "this operator")
    )


def afdf(
    a: Tensor, d: Tensor, *, blocks: Blocks | None = None, dtype: torch.dtype | None = None
) -> LinearOperator:
    """diag(a) F diag(d) F^-1, complex (Moczulski et al. 2015): one product M_1 M_2^*, permutations cancel."""
    n = _common_length(a, d)
    dtype = checked_dtype(dtype or dtype_of(a, d, complex=True), True, "an AFDF operator")
    block_pair = fourier_blocks(n, blocks, pad=None)
    M = fourier_monarch(n, n, n, block_pair)
    right = d.to(torch.complex128)[stride_order(n, block_pair[0])]
    return (M.scaled(a.to(torch.complex128), right) @ M.H).to(dtype.to_real())


def acdc(
    a: Tensor, d: Tensor, *, blocks: Blocks | None = None, dtype: torch.dtype | None = None
) -> LinearOperator:
    """diag(a) C diag(d) C^-1 with the orthogonal cosine transform C, real: one product M_1 M_2^T of rank 2."""
    n = _common_length(a, d)
    dtype = _real_dtype(dtype, "an ACDC operator", a, d)
    spec = trigonometric_spec(n, type=2, norm="ortho", sine=False)
    block_pair = fourier_blocks(n, blocks, pad=None)
    M = spec.monarch(block_pair)
    assert spec.order_in is not None
    right = d.double()[spec.order_in][stride_order(n, block_pair[0])]
    return (M.scaled(a.double(), right) @ spec.monarch(block_pair).H).to(dtype)


def fastfood(
    s: Tensor,
    g: Tensor,
    b: Tensor,
    permutation: Tensor,
    *,
    blocks: Blocks | None = None,
    dtype: torch.dtype | None = None,
) -> LinearOperator:
    """diag(s) H diag(g) P H diag(b) with Hadamard matrices H (Le et al. 2013): Monarch, permutation, Monarch."""
    H = hadamard(_common_length(s, g, b, permutation), blocks=blocks, dtype=torch.float64)
    product = H.scaled(s.double(), g.double()) @ Permutation(permutation) @ H.scaled(None, b.double())
    return product.to(_real_dtype(dtype, "a Fastfood operator", s, g, b))


def hd3(
    d1: Tensor, d2: Tensor, d3: Tensor, *, blocks: Blocks | None = None, dtype: torch.dtype | None = None
) -> LinearOperator:
    """H diag(d1) H diag(d2) H diag(d3), H orthogonal Hadamard (Yu et al. 2016): three Monarch matrices."""
    H = hadamard(_common_length(d1, d2, d3), norm="ortho", blocks=blocks, dtype=torch.float64)
    first, second, third = (H.scaled(None, d.double()) for d in (d1, d2, d3))
    return (first @ second @ third).to(_real_dtype(dtype, "an (HD)^3 operator", d1, d2, d3))


def _real_dtype(dtype: torch.dtype | None, what: str, *diagonals: Tensor) -> torch.dtype:
    dtype = checked_dtype(dtype or dtype_of(*diagonals), False, what)
    if dtype.is_complex or any(d.is_complex() for d in diagonals):
        raise TypeError(f"{what} is real; got complex diagonals or dtype={dtype}.")
    return dtype


def _sylvester(n: int) -> Tensor:
    H = torch.ones(1, 1, dtype=torch.float64)
    while len(H) < n:
        H = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64), H)
    return H


def _common_length(*vectors: Tensor) -> int:
    shapes = {tuple(tensor(v, "a diagonal").shape) for v in vectors}
    if len(shapes) != 1 or vectors[0].ndim != 1:
        raise ValueError(f"the diagonals must be vectors of one length; got shapes {sorted(shapes)}.")
    return len(vectors[0])
