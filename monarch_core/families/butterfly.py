"""Butterfly matrices condensed into one Monarch matrix (Theorem C.9 of the paper's appendix: B is contained in M).

A butterfly matrix of size n = 2^s is B = B_n ... B_4 B_2, where B_m is block-diagonal with n / m blocks

    [ D1 D2 ]
    [ D3 D4 ]      of four diagonal matrices of size m / 2.

For a block size b the first factors to act, B_b ... B_2, multiply to a block-diagonal matrix (R), the others,
B_n ... B_2b, to a matrix of diagonal blocks (L): B = L R, a Monarch matrix with n / b blocks in R and b in L.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..checks import tensor, whole
from ..linear_operator import checked_dtype, dtype_of
from ..monarch import Monarch


def butterfly(
    factors: Sequence[Tensor], block_size: int | None = None, *, dtype: torch.dtype | None = None
) -> Monarch:
    """The Monarch matrix equal to B_n ... B_4 B_2, given the factors in the order they act: B_2, B_4, ..., B_n.

    factors[s] holds the diagonals of B_m, m = 2^(s+1), as a tensor (n / m, 2, 2, m / 2): block, row and column of
    the 2 x 2 arrangement, diagonal entry. `block_size` is b, a power of two below n; near sqrt(n) by default.

    >>> ones_and_minus = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    >>> factors = [ones_and_minus[None, :, :, None].expand(8 // m, 2, 2, m // 2) for m in (2, 4, 8)]
    >>> butterfly(factors).to_dense()[1, :4].tolist()  # these are the factors of the Hadamard matrix
    [1.0, -1.0, 1.0, -1.0]
    """
    if len(factors) < 2:
        raise ValueError(f"a butterfly matrix has at least two factors, B_2 and B_4; got {len(factors)}.")
    n = 2 ** len(factors)
    for s, factor in enumerate(factors):
        m = 2 ** (s + 1)
        if tensor(factor, f"factor {s} of a butterfly matrix").shape != (n // m, 2, 2, m // 2):
            raise ValueError(
                f"factor {s} of a butterfly matrix of size {n} has shape {(n // m, 2, 2, m // 2)}; "
                f"got {tuple(factor.shape)}."
            )
    b = 2 ** (len(factors) // 2) if block_size is None else whole(block_size, "block_size")
    if not (1 < b < n and n % b == 0):
        raise ValueError(
            f"the block size of a butterfly matrix of size {n} is a power of two inside (1, {n}); got {b}."
        )
    K, split = n // b, b.bit_length() - 1
    both = dtype_of(*factors)
    work = checked_dtype(dtype or both, both.is_complex, "this butterfly matrix")
    R = _through(factors[:split], torch.eye(b, dtype=work).repeat(K, 1)).reshape(K, b, 1, b)
    L = _through(factors[split:], torch.eye(K, dtype=work).repeat_interleave(b, 0)).reshape(K, b, K)
    return Monarch.from_factors(R, L.transpose(0, 1)[..., None])


def _through(factors: Sequence[Tensor], X: Tensor) -> Tensor:
    """The product of butterfly factors with the columns of X."""
    for factor in factors:
        groups, _, _, half = factor.shape
        X = torch.einsum("gpqh,gqhc->gphc", factor.to(X.dtype), X.reshape(groups, 2, half, -1)).flatten(0, 2)
    return X
