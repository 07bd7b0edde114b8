"""The classes of products of the paper's Appendix C, drawn at random and ready to train.

Any product is written with `@` and `.H`: `M1 @ M2.H` is in MM*. The functions here only name the paper's classes,
in its terms: n x n Monarch matrices of block size b, that is n / b blocks in R and b blocks in L.
"""

from __future__ import annotations

import torch

from ..checks import whole
from ..linear_operator import LinearOperator, Product
from ..monarch import Monarch
from ..reordering import Resize
from ..sizes import composite_size, near_sqrt


def mm_star(
    n: int, block_size: int | None = None, power: int = 1, *, dtype: torch.dtype | None = None
) -> LinearOperator:
    """(M M*)^power: M_1 M_2^* ... with 2 `power` Monarch matrices, 2 power (n^2 / b + n b) parameters.

    >>> mm_star(16).num_parameters, mm_star(16, power=2).num_parameters
    (256, 512)
    """
    power = whole(power, "the number of products M M*", least=1)
    return Product(*(_monarch(n, block_size, dtype) @ _monarch(n, block_size, dtype).H for _ in range(power)))


def m_star_m(n: int, block_size: int | None = None, *, dtype: torch.dtype | None = None) -> LinearOperator:
    """M_1^* M_2, 2 (n^2 / b + n b) parameters."""
    return _monarch(n, block_size, dtype).H @ _monarch(n, block_size, dtype)


def hierarchy(
    n: int,
    width: int,
    expansion: int,
    block_size: int | None = None,
    *,
    dtype: torch.dtype | None = None,
) -> LinearOperator:
    """(M M*)^w_e: the leading n x n corner of w products M M* of size e n.

    2 w e^2 n^2 / b + 2 w e n b parameters; every matrix with a fast algorithm is in this class for some w and e.

    >>> hierarchy(8, width=2, expansion=2, block_size=4)(torch.ones(8)).shape
    torch.Size([8])
    """
    size = whole(expansion, "the expansion", least=1) * whole(n, "the size of a Monarch operator", least=1)
    return Resize(size, n) @ mm_star(size, block_size, width, dtype=dtype) @ Resize(n, size)


def _monarch(n: int, block_size: int | None, dtype: torch.dtype | None) -> Monarch:
    b = near_sqrt(composite_size(n, None))[1] if block_size is None else whole(block_size, "block_size", 1)
    if n % b:
        raise ValueError(f"the block size of a Monarch matrix of size {n} divides {n}; got {b}.")
    return Monarch(n, blocks=(n // b, b), dtype=dtype)
