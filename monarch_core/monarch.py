"""The Monarch matrix as a trainable linear operator.

The one index convention, in the paper's letters (M = P L P^T R); everything else is derived from it:

    M[(l j), (k i)] = sum_r L[j, l, k, r] R[k, j, r, i]

The input is read as a grid (k, i), the output is the grid (l, j); the second letter runs fastest.

    R    (K, J, r, I)    K blocks: mixes i within each row k of the input grid, for every j
    L    (J, O, K, r)    J blocks: mixes k within each column j of the output grid
    I = ceil(in_features / K),  O = ceil(out_features / J)

So M is a J x K grid of O x I sub-blocks of rank r (strided in the rows): r = 1 is the paper, r > 1 is the
block tensor train. `blocks=(K, J)`. Padding rule: the input is padded with zeros at its end to K * I, the
output is computed at length O * J and cropped at its end to out_features. Complex factors are stored as real
parameters with a trailing axis of 2.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad as zero_pad
from torch.optim.optimizer import register_optimizer_step_post_hook

from . import checks
from .linear_operator import (
    LinearOperator,
    arrow,
    as_complex_if,
    checked_dtype,
    complex_factor,
    keeping_pairs,
)
from .multiply import check_types, is_traced, multiply
from .reordering import transposed_grid
from .sizes import Blocks, resolve_blocks, resolve_rank


class Monarch(LinearOperator):
    """M = P L P^T R on the last axis: K blocks in R, J blocks in L, sub-blocks of rank r.

    Arguments:
        in_features, out_features: sizes; out_features defaults to in_features.
        blocks: (K, J), or one number for both; near the square root by default.
        rank: r; by default the least for which the middle width K J r reaches min(in_features, out_features).
        pad: accept a prime size (with default blocks) by padding it to the next composite one.
        dtype: real or complex; torch's default dtype if None.

    The factors start as independent normal entries such that M keeps the variance of its input.

    >>> M = Monarch(64)
    >>> M
    Monarch(64 -> 64, blocks=(8, 8), rank=1, torch.float32, 1,024 parameters)
    >>> M(torch.ones(3, 64)).shape
    torch.Size([3, 64])
    """

    R: nn.Parameter
    L: nn.Parameter
    blocks: tuple[int, int]
    """(K, J), the numbers of blocks of R and of L."""
    rank: int

    def __init__(
        self,
        in_features: int,
        out_features: int | None = None,
        blocks: Blocks | None = None,
        rank: int | None = None,
        *,
        pad: bool = False,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        out_features = in_features if out_features is None else out_features
        K, J = resolve_blocks(in_features, out_features, blocks, pad)
        rank = resolve_rank(in_features, out_features, (K, J), rank)
        dtype = checked_dtype(dtype, complex=False, what="a Monarch operator")
        self.in_shape, self.out_shape = (in_features,), (out_features,)
        self.is_complex = dtype.is_complex
        self.blocks, self.rank = (K, J), rank
        self._cached_dense: tuple[tuple[Any, ...], Tensor] | None = None
        I, O = ceil(in_features / K), ceil(out_features / J)
        self.R = nn.Parameter(self._storage((K, J, rank, I), dtype, device))
        self.L = nn.Parameter(self._storage((J, O, K, rank), dtype, device))
        self.reset_parameters()

    @staticmethod
    def _storage(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device | str | None) -> Tensor:
        shape, dtype = ((*shape, 2), dtype.to_real()) if dtype.is_complex else (shape, dtype)
        return torch.empty(shape, dtype=dtype, device=device)

    def reset_parameters(self) -> None:
        """Independent normal entries of variance 1/I in R and 1/(K r) in L: M keeps the input's variance."""
        K, _, r, I = self.R.shape[:4]
        halves = 2 if self.is_complex else 1
        nn.init.normal_(self.R, std=(I * halves) ** -0.5)
        nn.init.normal_(self.L, std=(K * r * halves) ** -0.5)

    @classmethod
    def from_factors(
        cls, R: Tensor, L: Tensor, in_features: int | None = None, out_features: int | None = None
    ) -> Monarch:
        """The operator whose parameters are copies of R (K, J, r, I) and L (J, O, K, r), real or complex."""
        R, L = checks.tensor(R, "the factor R"), checks.tensor(L, "the factor L")
        fit = R.ndim == L.ndim == 4 and L.shape[0::2] == R.shape[1::-1] and L.shape[3] == R.shape[2]
        if not fit or 0 in (*R.shape, *L.shape):
            raise ValueError(
                "the factors of a Monarch operator are R (K, J, r, I) and L (J, O, K, r) with the same K, J "
                f"and r, all of them at least 1; got R {tuple(R.shape)} and L {tuple(L.shape)}."
            )
        dtype = torch.promote_types(R.dtype, L.dtype)
        K, J, r, I = R.shape
        in_features = K * I if in_features is None else checks.whole(in_features, "in_features")
        out_features = J * L.shape[1] if out_features is None else checks.whole(out_features, "out_features")
        if (ceil(in_features / K), ceil(out_features / J)) != (I, L.shape[1]):
            raise ValueError(
                f"factors with blocks=({K}, {J}) of sizes {I} and {L.shape[1]} belong to an operator "
                f"{K * I} -> {J * L.shape[1]} or slightly less, not {in_features} -> {out_features}."
            )
        new = cls(in_features, out_features, (K, J), r, dtype=dtype, device="meta")
        new.R, new.L = (nn.Parameter(_stored(factor.detach().to(dtype))) for factor in (R, L))
        return new

    @classmethod
    def from_dense(
        cls, A: Tensor, blocks: Blocks | None = None, rank: int | None = None, pad: bool = False
    ) -> Monarch:
        """The Monarch operator nearest to the matrix A (out_features x in_features) in the Frobenius norm."""
        from .projection import project

        out_features, in_features = checks.tensor(A, "the argument of from_dense", axes=2).shape
        K, J = resolve_blocks(in_features, out_features, blocks, pad)
        rank = resolve_rank(in_features, out_features, (K, J), rank)
        padded = zero_pad(A.detach(), (0, -in_features % K, 0, -out_features % J))
        R, L = project(padded, (K, J), rank)
        return cls.from_factors(R, L, in_features, out_features)

    def scaled(self, left: Tensor | None = None, right: Tensor | None = None) -> Monarch:
        """A new operator diag(left) M diag(right): the diagonals fold into the factors."""
        (R, L), (K, J) = self.factors(), self.blocks
        for diagonal, n in ((left, self.out_features), (right, self.in_features)):
            if diagonal is not None and len(checks.tensor(diagonal, "a diagonal", axes=1)) != n:
                raise ValueError(
                    f"this side of the operator has {n} entries; the diagonal has {len(diagonal)}."
                )
        if right is not None:
            R = R * zero_pad(right, (0, -self.in_features % K)).reshape(K, 1, 1, -1)
        if left is not None:
            L = L * zero_pad(left, (0, -self.out_features % J)).reshape(-1, J).T[:, :, None, None]
        return self.from_factors(R, L, self.in_features, self.out_features)

    def map_factors(self, function: Callable[[Tensor], Tensor]) -> Monarch:
        """A new operator of the same sizes with the factors function(R) and function(L)."""
        R, L = map(function, self.factors())
        return self.from_factors(R, L, self.in_features, self.out_features)

    def real_part(self) -> Monarch:
        """A new real operator Re M: the real part of a complex Monarch of rank r is a real one of rank 2 r."""
        if not self.is_complex:
            return self.map_factors(torch.clone)
        R, L = self.factors()
        R, L = torch.cat((R.real, R.imag), 2), torch.cat((L.real, -L.imag), 3)
        return self.from_factors(R, L, self.in_features, self.out_features)

    @property
    def dtype(self) -> torch.dtype:
        return self.R.dtype.to_complex() if self.is_complex else self.R.dtype

    def factors(self) -> tuple[Tensor, Tensor]:
        """R (K, J, r, I) and L (J, O, K, r), complex tensors if the operator is complex."""
        if self.is_complex:
            return complex_factor(self.R), complex_factor(self.L)
        return self.R, self.L

    def flops(self, batch: int = 1) -> int:
        return (8 if self.is_complex else 2) * batch * sum(f.numel() for f in self.factors())

    def to_dense(self) -> Tensor:
        R, L = self.factors()
        dense = torch.einsum("jlkr,kjri->ljki", L, R).flatten(2).flatten(0, 1)
        return dense[: self.out_features, : self.in_features]

    def multiply(self, x: Tensor) -> Tensor:
        dense = self._dense_for_inference()
        if dense is not None:
            x, dense = self._promoted(x, dense)
            check_types(x, dense)
            return x @ dense.mT
        x, R, L = self._promoted(x, *self.factors())
        K, J = self.blocks
        missing = -self.in_features % K
        y = multiply(zero_pad(x, (0, missing)) if missing else x, R, L)
        return y[..., : self.out_features] if self.out_features % J else y

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        dense = self._dense_for_inference()
        if dense is not None:
            y, dense = self._promoted(y, dense)
            check_types(y, dense)
            return y @ dense.conj()
        # M^H is the Monarch product with the factors exchanged, between two transpositions of the grid:
        # conj L mixes l within each j, then conj R mixes j within each k.
        y, R, L = self._promoted(y, *self.factors())
        K, J = self.blocks
        y = transposed_grid(zero_pad(y, (0, -self.out_features % J)), J)
        x = multiply(y, L.conj().permute(0, 2, 3, 1), R.conj().permute(0, 3, 1, 2))
        return transposed_grid(x, K)[..., : self.in_features]

    def _promoted(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """All complex if one of them is: a real operator takes complex inputs and the other way round."""
        some_complex = any(t.is_complex() for t in tensors)
        return tuple(as_complex_if(t, some_complex) for t in tensors)

    dense_limit = 128
    """In evaluation, real operators up to this size and complex ones up to half of it work as one dense product,
    which at these sizes spares more in calls than it costs in arithmetic. It is kept until a factor changes.

    Any change in place is noticed, except one made behind autograd's back, through `.data`, which `train()` or
    `eval()` makes good."""

    def _dense_for_inference(self) -> Tensor | None:
        if (
            self.training
            or torch.is_grad_enabled()
            or torch.compiler.is_compiling()
            or is_traced()
            or max(self.in_features, self.out_features) * (1 + self.is_complex) > self.dense_limit
            or not (isinstance(self.R, nn.Parameter) and isinstance(self.L, nn.Parameter))
            or self.R.is_inference()
            or self.L.is_inference()
        ):
            return None
        factors = tuple((id(p), p._version, p.data_ptr(), p.dtype, p.device) for p in (self.R, self.L))
        key = (_optimizer_steps, _autocast_dtype(self.R), *factors)
        if self._cached_dense is None or self._cached_dense[0] != key:
            self._cached_dense = key, self.to_dense()
        return self._cached_dense[1]

    def train(self, mode: bool = True) -> Monarch:
        self._cached_dense = None
        return super().train(mode)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Monarch:
        super()._apply(keeping_pairs(fn) if self.is_complex else fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached_dense": None}

    def extra_repr(self) -> str:
        structure = f"blocks={self.blocks}, rank={self.rank}, {self.dtype}"
        return f"{arrow(self)}, {structure}, {self.num_parameters:,} parameters"


_optimizer_steps = 0
"""Steps that optimisers have taken: the fused ones change parameters without telling autograd."""


def _count_step(*_: Any) -> None:
    global _optimizer_steps
    if not torch.compiler.is_compiling():
        _optimizer_steps += 1


register_optimizer_step_post_hook(_count_step)


def _autocast_dtype(x: Tensor) -> torch.dtype | None:
    """The type in which autocast computes products of x now; None without autocast."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if not x.is_meta and torch.is_autocast_enabled(device) else None


def _stored(factor: Tensor) -> Tensor:
    """A contiguous copy of a factor as a parameter holds it."""
    return (torch.view_as_real(factor.resolve_conj()) if factor.is_complex() else factor).clone(
        memory_format=torch.contiguous_format
    )
