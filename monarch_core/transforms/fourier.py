"""The discrete Fourier and Hartley transforms as trainable Monarch operators."""

from __future__ import annotations

import torch
from torch import Tensor, arange

from ..linear_operator import LinearOperator
from ..sizes import Blocks
from .fourier_factors import root_of_unity
from .starts import ComplexWaves, register_start
from .twisted_dft import Norm, TwistedDFT, norm_gain


def dft(
    n: int,
    *,
    inverse: bool = False,
    norm: Norm | None = "backward",
    centered: bool = False,
    blocks: Blocks | None = None,
    pad: bool = False,
    dtype: torch.dtype | None = None,
) -> LinearOperator:
    """X[f] = sum_t x[t] exp(-2 pi i f t / n), as torch.fft.fft (or ifft), with its norms.

    One Monarch matrix behind a stride permutation, exact for every composite n. `centered` has the zero frequency
    and the zero position in the middle, at n // 2 (fftshift, transform, ifftshift), for the same parameter count.
    `blocks=(K, J)` with K J = n. A prime n needs `pad=True`, and is then Bluestein's product of two Monarch
    matrices.

    >>> x = torch.randn(160, dtype=torch.complex128)
    >>> torch.allclose(dft(160, dtype=torch.complex128)(x), torch.fft.fft(x))
    True
    """
    return dft_spec(n, inverse, norm, centered).operator(blocks, pad, dtype, "the Fourier transform")


def dft_spec(
    n: int, inverse: bool = False, norm: Norm | None = "backward", centered: bool = False
) -> TwistedDFT:
    """The Fourier transform of any size, prime or not, as a formula."""
    gain = norm_gain(norm, n, inverse)
    middle = n // 2 if centered else 0
    f = arange(n)
    # (f - c)(t - c) = f t - c f - c t + c^2
    left, right = root_of_unity(middle * (middle - f), n), root_of_unity(-middle * f, n)
    return TwistedDFT(n, left, right, gain, conjugate=inverse)


def hartley(
    n: int,
    *,
    norm: Norm | None = "backward",
    blocks: Blocks | None = None,
    pad: bool = False,
    dtype: torch.dtype | None = None,
) -> LinearOperator:
    """X[f] = sum_t x[t] (cos + sin)(2 pi f t / n): one real Monarch matrix of rank 2 behind a permutation.

    >>> H = hartley(12, norm="ortho", dtype=torch.float64).to_dense()
    >>> torch.allclose(H @ H, torch.eye(12, dtype=torch.float64))
    True
    """
    gain = norm_gain(norm, n)
    ones = torch.ones(n, dtype=torch.complex128)
    spec = TwistedDFT(n, (1 + 1j) * ones, ones, gain, real=True)
    return spec.operator(blocks, pad, dtype, "the Hartley transform")


class Fourier(ComplexWaves):
    """The start "dft"."""

    fourier = True

    def matrix(self, n: int, inverse: bool) -> Tensor:
        return dft_spec(n, inverse, "ortho").dense()

    def monarch(self, n: int, inverse: bool) -> LinearOperator:
        return dft(n, inverse=inverse, norm="ortho", dtype=torch.complex128)


register_start("dft", Fourier)
