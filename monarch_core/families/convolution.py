"""Circulant and Toeplitz matrices and convolutions: each one product M_1 M_2^* of Monarch matrices.

With F = M P = F^T, a circulant matrix with first column c is

    C = F^-1 diag(F c) F = (1/N) conj(M) (P diag(F c) P^T) M^T = M_1 M_2^*,

because the two permutations meet around the diagonal and the diagonal folds into M_1. A Toeplitz matrix is a corner
of a larger circulant one: its M_1 and M_2 are rectangular.
"""

from __future__ import annotations

from math import isqrt
from typing import Literal

import torch
from torch import Tensor

from ..checks import tensor, whole
from ..linear_operator import LinearOperator, RealPart, checked_dtype, dtype_of
from ..sizes import Blocks, block_pair, is_prime
from ..transforms.fourier_factors import fourier_blocks, fourier_monarch, stride_order

Mode = Literal["circular", "full", "same", "valid"]


def circulant(
    column: Tensor, *, blocks: Blocks | None = None, pad: bool = False, dtype: torch.dtype | None = None
) -> LinearOperator:
    """The circulant matrix C[f, t] = column[(f - t) mod n]: a circular convolution with `column`.

    The result is M_1 M_2^*, or for a real column, unless `dtype` is complex, its real part. A prime size needs
    `pad=True`: it then becomes a Toeplitz matrix inside a larger circulant one.

    >>> circulant(torch.tensor([1.0, 3.0, 4.0, 2.0]))(torch.tensor([0.0, 1.0, 0.0, 0.0])).round().tolist()
    [2.0, 1.0, 3.0, 4.0]
    """
    n = _vector_length(column, "the column of a circulant matrix")
    if pad and blocks is None and is_prime(n):
        return toeplitz(column, torch.cat((column[:1], column[1:].flip(0))), dtype=dtype)
    return _finish(circulant_product(column, n, n, fourier_blocks(n, blocks)), column, dtype)


def toeplitz(
    column: Tensor,
    row: Tensor | None = None,
    *,
    blocks: Blocks | None = None,
    dtype: torch.dtype | None = None,
) -> LinearOperator:
    """The Toeplitz matrix with this first column and first row (row[0] is ignored), as scipy.linalg.toeplitz.

    Without a row the matrix is Hermitian. Rectangular if the two lengths differ. `blocks=(K, J)` sets the period
    K J of the circulant matrix around it, at least len(column) + len(row) - 1.

    >>> toeplitz(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0, 5.0])).to_dense().round().tolist()
    [[1.0, 3.0, 5.0], [2.0, 1.0, 3.0]]
    """
    n_out = _vector_length(column, "the first column of a Toeplitz matrix")
    row = column.conj() if row is None else row
    n_in = _vector_length(row, "the first row of a Toeplitz matrix")
    diagonals = torch.cat((row[1:].flip(0).to(torch.promote_types(row.dtype, column.dtype)), column))
    return _finish(toeplitz_product(diagonals, n_out, n_in, blocks), diagonals, dtype)


def convolution(
    kernel: Tensor, n: int, mode: Mode = "circular", *, pad: bool = False, dtype: torch.dtype | None = None
) -> LinearOperator:
    """The convolution of a signal of length n with `kernel`.

    Modes "full", "same" and "valid" are those of numpy.convolve; "circular" wraps around at n.

    >>> convolution(torch.tensor([1.0, -1.0]), 4, "valid")(torch.tensor([1.0, 4.0, 9.0, 16.0])).round().tolist()
    [3.0, 5.0, 7.0]
    """
    m = _vector_length(kernel, "the kernel of a convolution")
    n = whole(n, "the length of a signal", least=1)
    if mode == "circular":
        if m > n:
            raise ValueError(f"a circular convolution of length {n} takes a kernel of at most {n}; got {m}.")
        column = torch.cat((kernel, kernel.new_zeros(n - m)))
        return circulant(column, pad=pad, dtype=dtype)
    # Rows first ... first + n_out - 1 of the full convolution, whose entry (f, t) is kernel[f - t].
    full = n + m - 1
    sizes = {"full": full, "same": max(n, m), "valid": abs(n - m) + 1}
    if mode not in sizes:
        raise ValueError(f'mode is "circular", "full", "same" or "valid"; got {mode!r}.')
    n_out = sizes[mode]
    first = (full - n_out) // 2
    taps = torch.arange(first - n + 1, first + n_out)
    inside = (taps >= 0) & (taps < m)
    diagonals = torch.where(inside, kernel[taps.clamp(0, m - 1)], 0)
    return _finish(toeplitz_product(diagonals, n_out, n), kernel, dtype)


def circulant_product(
    column: Tensor,
    n_out: int,
    n_in: int,
    blocks: tuple[int, int],
    left: Tensor | None = None,
    right: Tensor | None = None,
) -> LinearOperator:
    """diag(left) C[:n_out, :n_in] diag(right) = M_1 M_2^* in complex128, C circulant with period K J."""
    N = blocks[0] * blocks[1]
    spectrum = torch.fft.fft(column.detach().to(torch.complex128))[stride_order(N, blocks[0])]
    M1 = fourier_monarch(N, n_out, N, blocks).scaled(None if left is None else left.conj(), spectrum.conj())
    M2 = fourier_monarch(N, n_in, N, blocks).scaled(right)
    return M1.map_factors(torch.conj) @ M2.map_factors(torch.conj).H


def toeplitz_product(
    diagonals: Tensor,
    n_out: int,
    n_in: int,
    blocks: Blocks | None = None,
    left: Tensor | None = None,
    right: Tensor | None = None,
) -> LinearOperator:
    """diag(left) T diag(right) with T[f, t] = diagonals[f - t + n_in - 1], as M_1 M_2^* in complex128."""
    least = n_out + n_in - 1
    if blocks is None:
        J = isqrt(least - 1) + 1
        blocks = -(-least // J), J
    blocks = block_pair(blocks)
    period = blocks[0] * blocks[1]
    if period < least:
        raise ValueError(
            f"a Toeplitz matrix {n_in} -> {n_out} lies in circulant ones of period {least} or more; "
            f"got blocks={blocks}, a period of {period}."
        )
    column = torch.cat((diagonals[n_in - 1 :], diagonals.new_zeros(period - least), diagonals[: n_in - 1]))
    return circulant_product(column, n_out, n_in, blocks, left, right)


def _finish(product: LinearOperator, entries: Tensor, dtype: torch.dtype | None) -> LinearOperator:
    """The product in the dtype asked for (that of the entries by default), real if that is real."""
    dtype = checked_dtype(dtype or dtype_of(entries), entries.is_complex(), "this matrix")
    return (product if dtype.is_complex else RealPart(product)).to(dtype.to_real())


def _vector_length(x: Tensor, what: str) -> int:
    return whole(len(tensor(x, what, axes=1)), f"the length of {what}", least=1)
