"""The discrete cosine and sine transforms, types 1 to 4, each one real Monarch matrix of rank 2.

Every one is the real part of a twisted DFT. With s = 0 and c = 1 for cosines, s = 1 and c = i for sines, the
entry of index (f, t) is 2 Re(c exp(-i theta)) with

    type 1   theta = 2 pi (f + s)(t + s) / N      N = 2 (n - 1) for cosines, 2 (n + 1) for sines
    type 2   theta = 2 pi (f + s)(2 t + 1) / 4n
    type 3   theta = 2 pi (2 f + 1)(t + s) / 4n   the transpose of type 2
    type 4   theta = 2 pi (2 f + 1)(2 t + 1) / 8n

In types 2 to 4 the odd numbers 2 t + 1 are taken in the order 1, 5, 9, ..., -7, -3 (Makhoul 1980): even t upwards,
then odd t downwards with the sign reversed, which a cosine does not notice. Then (2 t + 1) = 4 m + 1 at position m,
up to multiples of 4n, and theta is a DFT angle of period n plus terms in f or m alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, arange, where

from ..checks import whole
from ..linear_operator import LinearOperator
from ..sizes import Blocks
from .fourier_factors import root_of_unity
from .starts import RealWaves, register_start
from .twisted_dft import Norm, TwistedDFT, norm_gain


def dct(
    n: int,
    *,
    type: int = 2,
    inverse: bool = False,
    norm: Norm | None = "backward",
    blocks: Blocks | None = None,
    pad: bool = False,
    dtype: torch.dtype | None = None,
) -> LinearOperator:
    """The cosine transform of scipy.fft.dct (idct if `inverse`), types 1 to 4 and all norms.

    Type 2 is X[f] = 2 sum_t x[t] cos(pi f (2 t + 1) / 2n). Types 2 to 4 need a composite n (or `pad=True`), with
    `blocks=(K, J)` and K J = n; type 1 takes any n >= 3, and 2 with `pad=True`, with K J = 2 (n - 1).

    >>> round(dct(4)(torch.ones(4))[0].item(), 3)
    8.0
    """
    return trigonometric_spec(n, type, norm, inverse, sine=False).operator(
        blocks, pad, dtype, "the cosine transform"
    )


def dst(
    n: int,
    *,
    type: int = 2,
    inverse: bool = False,
    norm: Norm | None = "backward",
    blocks: Blocks | None = None,
    pad: bool = False,
    dtype: torch.dtype | None = None,
) -> LinearOperator:
    """The sine transform of scipy.fft.dst (idst if `inverse`), types 1 to 4 and all norms.

    Type 2 is X[f] = 2 sum_t x[t] sin(pi (f + 1)(2 t + 1) / 2n). Types 2 to 4 need a composite n (or `pad=True`),
    with `blocks=(K, J)` and K J = n; type 1 takes any n, with K J = 2 (n + 1).
    """
    return trigonometric_spec(n, type, norm, inverse, sine=True).operator(
        blocks, pad, dtype, "the sine transform"
    )


def trigonometric_spec(
    n: int, type: int, norm: Norm | None, inverse: bool = False, *, sine: bool
) -> TwistedDFT:
    """The cosine or sine transform of any size, prime or not, as a formula."""
    n = whole(n, "the number of points of a transform", least=1)
    if type not in (1, 2, 3, 4):
        raise ValueError(f"cosine and sine transforms have types 1, 2, 3 and 4; got type={type!r}.")
    if type == 1 and not sine and n < 2:
        raise ValueError(f"the cosine transform of type 1 needs at least 2 points; got n={n}.")
    if inverse:
        type = {1: 1, 2: 3, 3: 2, 4: 4}[type]
        norm = "ortho" if norm == "ortho" else "backward" if norm == "forward" else "forward"
    length = 2 * n if type != 1 else 2 * (n + 1) if sine else 2 * (n - 1)
    gain = norm_gain(norm, length)
    s, c = (1, 1j) if sine else (0, 1)
    m, order = arange(n), _makhoul_order(n)
    sign = where(order % 2 == 1, -1.0, 1.0) if sine else torch.ones(n)
    if type == 1:
        spec = TwistedDFT(length, c * root_of_unity(s * (m + s), length), root_of_unity(s * m, length))
    elif type == 2:
        spec = TwistedDFT(n, c * root_of_unity(m + s, 4 * n), sign * root_of_unity(s * m, n), order_in=order)
    elif type == 3:
        spec = TwistedDFT(n, sign * root_of_unity(s * m, n), c * root_of_unity(m + s, 4 * n), order_out=order)
    else:
        odd = 4 * m - 4 * n * (order % 2)
        spec = TwistedDFT(
            n, c * root_of_unity(2 * m + 1, 8 * n), sign * root_of_unity(odd, 8 * n), order_in=order
        )
    left, right = _edge_weights(n, type, sine, norm == "ortho")
    spec.left, spec.right = spec.left * left, spec.right * right
    spec.gain, spec.real = 2 * gain, True
    return spec


def _makhoul_order(n: int) -> Tensor:
    return torch.cat((arange(0, n, 2), arange(1, n, 2).flip(0)))


def _edge_weights(n: int, type: int, sine: bool, ortho: bool) -> tuple[Tensor, Tensor]:
    """scipy's weights of the edge entries on the output and the input side: 1/2 where the factor 2 is absent from
    its definition, and with norm="ortho" the powers of sqrt 2 that make the matrix orthogonal."""
    left, right = torch.ones(n, dtype=torch.float64), torch.ones(n, dtype=torch.float64)
    edges = [0, n - 1] if type == 1 else [n - 1] if sine else [0]
    if type == 4 or (type == 1 and sine):
        return left, right
    if type in (1, 3):
        right[edges] = 0.5**0.5 if ortho else 0.5
    if type in (1, 2) and ortho:
        left[edges] = 0.5**0.5
    return left, right


class Cosines(RealWaves):
    """The start "dct": even about both ends, as between walls without flux."""

    def matrix(self, n: int, inverse: bool) -> Tensor:
        return trigonometric_spec(n, 2, "ortho", inverse, sine=False).dense()

    def monarch(self, n: int, inverse: bool) -> LinearOperator:
        return dct(n, norm="ortho", inverse=inverse, dtype=torch.float64)


class Sines(RealWaves):
    """The start "dst": odd about both ends, as between walls where the field is zero."""

    def matrix(self, n: int, inverse: bool) -> Tensor:
        return trigonometric_spec(n, 2, "ortho", inverse, sine=True).dense()

    def monarch(self, n: int, inverse: bool) -> LinearOperator:
        return dst(n, norm="ortho", inverse=inverse, dtype=torch.float64)


register_start("dct", Cosines)
register_start("dst", Sines)
