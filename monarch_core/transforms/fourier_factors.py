"""The DFT matrix as a Monarch matrix, in closed form and double precision.

F[f, t] = exp(-2 pi i f t / N) for any N = K J: with f = l J + j and t = K i + k,

    exp(-2 pi i f t / N) = exp(-2 pi i l k / K) * exp(-2 pi i j t / N) = L[j, l, k] * R[k, j, i],

so block k of R takes every K-th entry of x: F = M P with the stride permutation P, exactly. A corner of F, fewer
frequencies f or fewer samples t, only needs smaller blocks.
"""

from __future__ import annotations

from math import ceil, pi

import torch
from torch import Tensor, arange

from ..monarch import Monarch
from ..sizes import Blocks, block_pair, composite_size, near_sqrt


def root_of_unity(power: Tensor, N: int) -> Tensor:
    """exp(-2 pi i power / N) for integers `power`, reduced modulo N before any rounding."""
    angle = (power % N).double() * (-2 * pi / N)
    return torch.polar(torch.ones_like(angle), angle)


def fourier_blocks(
    N: int,
    blocks: Blocks | None = None,
    pad: bool | None = False,
    what: str = "a Fourier transform of period",
) -> tuple[int, int]:
    """(K, J) with K J = N: as given, K alone, or near the square root. `what` has the size N."""
    if blocks is None:
        return near_sqrt(composite_size(N, pad))
    K, J = block_pair(blocks)
    J = J if isinstance(blocks, (tuple, list)) else N // K
    if K * J != N:
        raise ValueError(
            f"{what} {N} needs two block counts whose product is {N}; got ({K}, {J}). "
            f"Take {near_sqrt(N)}, or leave blocks out."
        )
    return K, J


def fourier_monarch(N: int, n_out: int, n_in: int, blocks: tuple[int, int]) -> Monarch:
    """M with M P = N^(-1/2) F[:n_out, :n_in] in complex128, unitary blocks if n_out = n_in = N.

    n_in is padded to a multiple of K. Blocks that a small corner never touches (k >= n_in, j >= n_out) are left out.
    """
    K, J = blocks
    I, O = ceil(n_in / K), ceil(n_out / J)
    k, j, i, l = arange(min(K, n_in)), arange(min(J, n_out)), arange(I), arange(O)
    t = K * i + k[:, None]
    R = root_of_unity(j[:, None] * t[:, None, :], N) / J**0.5
    L = root_of_unity(l[:, None] * k, K).expand(len(j), -1, -1) / K**0.5
    return Monarch.from_factors(R[:, :, None, :], L[..., None], len(k) * I, n_out)


def stride_order(n: int, columns: int) -> Tensor:
    """The index list of the permutation P above: position (k, i) holds entry t = K i + k, with K columns."""
    return arange(n).reshape(-1, columns).T.flatten()
