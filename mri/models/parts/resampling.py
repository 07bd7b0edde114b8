"""A learned inverse DFT at another length."""

import torch
from torch import Tensor

from monarch_core import LinearOperator, dft


def resampled(matrix: Tensor, n: int) -> Tensor:
    """A matrix (N, N) from centred k-space to image, close to the inverse DFT F^H, for n points of the field of view.

    What was learned is W = F M, nearly diagonal. W[k + d, k], by how much frequency k leaks into k + d, is interpolated
    linearly in k, relative to the highest frequency, for each d: the sampling scales with the grid, and d means the
    same modulation of the image at every size. The result is F^H W' with n x n points; F^H itself becomes F^H, and with
    n = N nothing changes.

    >>> M, other = (dft(n, inverse=True, norm="ortho", centered=True).to_dense() for n in (9, 6))
    >>> torch.allclose(resampled(M, 6), other, atol=1e-6)
    True
    """
    N = len(matrix)
    W = _dft(matrix, N)(matrix.mT).mT
    k = torch.arange(n, device=matrix.device)
    leak = (k[:, None] - k + n // 2) % n - n // 2  # d, of row k + d and column k
    at = ((k - n // 2).to(matrix.real.dtype) * (N / n) + N // 2).clamp(0, N - 1)
    low = at.floor().long().clamp_max(N - 2)
    share = at - low
    below, above = (W[(column + leak) % N, column.expand_as(leak)] for column in (low, low + 1))
    values = torch.lerp(below, above, share.to(W.dtype))
    half = min(n, N) / 2
    known = (-half <= leak) & (leak < half)
    return _dft(matrix, n).adjoint(torch.where(known, values, 0).mT).mT


def _dft(like: Tensor, n: int) -> LinearOperator:
    """The centred orthonormal DFT of n points."""
    operator = dft(n, norm="ortho", centered=True, pad=True, dtype=like.dtype)
    return operator.requires_grad_(False).to(like.device)
