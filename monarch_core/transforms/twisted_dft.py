"""One closed form behind the Fourier, Hartley, cosine and sine transforms: the twisted DFT.

    A = gain * diag(left) F diag(right),   F[f, t] = exp(-2 pi i f t / N),

or the real part of it, between two fixed reorderings. F is one Monarch matrix behind a stride permutation, the
diagonals fold into its factors, and a real part only doubles the rank: so is A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, arange

from ..checks import whole
from ..families.convolution import toeplitz_product
from ..linear_operator import LinearOperator, RealPart, checked_dtype
from ..monarch import Monarch
from ..reordering import Permutation, Resize, Stride
from ..sizes import Blocks, is_prime
from .fourier_factors import fourier_blocks, fourier_monarch, root_of_unity, stride_order

Norm = Literal["backward", "ortho", "forward"]


@dataclass
class TwistedDFT:
    """gain * diag(left) F diag(right) with period N; its conjugate (an inverse transform), or its real part.

    Entry t of the input is taken from order_in[t], entry f of the result goes to order_out[f]; None moves nothing.
    """

    N: int
    left: Tensor
    right: Tensor
    gain: float = 1.0
    conjugate: bool = False
    real: bool = False
    order_in: Tensor | None = None
    order_out: Tensor | None = None

    def dense(self) -> Tensor:
        """The matrix, in double precision."""
        f, t = arange(len(self.left)), arange(len(self.right))
        A = self.gain * self.left[:, None] * root_of_unity(f[:, None] * t, self.N) * self.right
        A = A.conj().resolve_conj() if self.conjugate else A
        A = A if self.order_in is None else A[:, self.order_in.argsort()]
        A = A if self.order_out is None else A[self.order_out.argsort()]
        return A.real if self.real else A

    def monarch(self, blocks: tuple[int, int]) -> Monarch:
        """The Monarch matrix alone, between the reorderings, in double precision."""
        half = (self.gain * self.N**0.5) ** 0.5
        M = fourier_monarch(self.N, len(self.left), len(self.right), blocks)
        right = torch.cat((self.right, self.right.new_zeros(M.in_features - len(self.right))))
        M = M.scaled(self.left * half, right[stride_order(len(right), M.blocks[0])] * half)
        if self.real:
            return M.real_part()
        return M.map_factors(torch.conj) if self.conjugate else M

    def operator(
        self, blocks: Blocks | None, pad: bool, dtype: torch.dtype | None, name: str
    ) -> LinearOperator:
        """The trainable operator; a prime period needs `pad`, and then becomes Bluestein's product M_1 M_2^*."""
        dtype = checked_dtype(dtype, not self.real, name)
        if dtype.is_complex and self.real:
            raise TypeError(f"{name} is real; got dtype={dtype}. It accepts complex inputs all the same.")
        if pad and blocks is None and is_prime(self.N):
            operator = self._bluestein()
            if self.order_in is not None:
                operator = operator @ Permutation(self.order_in)
        else:
            operator = self._behind_stride(self.monarch(fourier_blocks(self.N, blocks)))
        if self.order_out is not None:
            operator = Permutation(self.order_out.argsort()) @ operator
        return operator.to(dtype.to_real())

    def _behind_stride(self, M: Monarch) -> LinearOperator:
        n, K = len(self.right), M.blocks[0]
        if self.order_in is not None:
            return M @ Permutation(self.order_in[stride_order(n, K)])
        operator = M @ Stride(M.in_features, K)
        return operator if n == M.in_features else operator @ Resize(n, M.in_features)

    def _bluestein(self) -> LinearOperator:
        # f t = (f^2 + t^2 - (f - t)^2) / 2 turns F into a Toeplitz matrix between two diagonals.
        n = len(self.right)
        chirp = root_of_unity(arange(n) ** 2, 2 * self.N)
        diagonals = root_of_unity(-(arange(1 - n, n) ** 2), 2 * self.N)
        left, right = self.gain * self.left * chirp, self.right * chirp
        if self.conjugate:
            diagonals, left, right = diagonals.conj(), left.conj(), right.conj()
        product = toeplitz_product(diagonals, n, n, left=left, right=right)
        return RealPart(product) if self.real else product


def norm_gain(norm: Norm | None, length: int, inverse: bool = False) -> float:
    """The factor that `norm` puts on a transform of logical length n: 1, n^(-1/2) or 1/n."""
    whole(length, "the number of points of a transform", least=1)
    exponents = {None: 0.0, "backward": 0.0, "ortho": -0.5, "forward": -1.0}
    if norm not in exponents:
        raise ValueError(f'norm is "backward", "ortho" or "forward"; got {norm!r}.')
    exponent = exponents[norm]
    gain: float = float(length) ** (-1.0 - exponent if inverse else exponent)
    return gain
