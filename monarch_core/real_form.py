"""Complex operators in real arithmetic: the same maps on pairs (re, im), for runtimes without complex numbers.

A complex number c acts on the pair of another as the matrix rho(c) = [[re, -im], [im, re]], and rho turns products
into products and adjoints into transposes. So every complex operator A has a real form rho(A), from (..., *in_shape, 2)
to (..., *out_shape, 2), and that of a Monarch matrix is a Monarch matrix of twice the rank.
"""

from __future__ import annotations

from functools import singledispatch
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad as zero_pad

from .linear_operator import LinearOperator, Product, check_operators
from .monarch import Monarch
from .reordering import Permutation, Resize, Stride
from .transforms.grid import GridMonarch
from .transforms.separable import Separable


@singledispatch
def in_pairs(operator: LinearOperator) -> LinearOperator:
    """The real operator that does to pairs (re, im), on a last axis of 2, what `operator` does to complex numbers.

    Monarch matrices, reorderings, and what is composed of them keep their structure; any other operator becomes a
    dense matrix. The parameters are copies.

    >>> from monarch_core import dft
    >>> F, x = dft(12), torch.randn(3, 12, dtype=torch.complex64)
    >>> torch.allclose(in_pairs(F)(torch.view_as_real(x)), torch.view_as_real(F(x)), atol=1e-5)
    True
    """
    check_operators([operator], "a real form")
    return DenseInPairs(operator)


class InPairs(LinearOperator):
    """What all real forms share: the shapes and the dtype."""

    def __init__(self, operator: LinearOperator) -> None:
        super().__init__()
        self.in_shape, self.out_shape = (*operator.in_shape, 2), (*operator.out_shape, 2)
        self._dtype = operator.dtype.to_real() if operator.dtype != torch.bool else operator.dtype

    @property
    def dtype(self) -> torch.dtype:
        return next((tensor.dtype for tensor in (*self.parameters(), *self.buffers())), self._dtype)

    def flops(self, batch: int = 1) -> int:
        parts = (module for module in self.children() if isinstance(module, LinearOperator))
        return sum(part.flops(batch) for part in parts)


class DenseInPairs(InPairs):
    """The real form of any operator, as one matrix."""

    matrix: Tensor

    def __init__(self, operator: LinearOperator) -> None:
        super().__init__(operator)
        with torch.no_grad():
            rho = _rho(operator.to_dense())  # (m, n, out, in)
        self.register_buffer("matrix", rho.transpose(1, 2).flatten(2).flatten(0, 1).contiguous())

    def flops(self, batch: int = 1) -> int:
        return 2 * batch * self.matrix.numel()

    def multiply(self, x: Tensor) -> Tensor:
        return _split(x.flatten(-len(self.in_shape)) @ self.matrix.mT, -1, self.out_shape)

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        return _split(y.flatten(-len(self.out_shape)) @ self.matrix, -1, self.in_shape)


class EachPart(InPairs):
    """A real operator, on real and imaginary part alike."""

    def __init__(self, operator: LinearOperator) -> None:
        super().__init__(operator)
        self.operator: LinearOperator = operator

    def flops(self, batch: int = 1) -> int:
        return 2 * self.operator.flops(batch)

    def multiply(self, x: Tensor) -> Tensor:
        y: Tensor = self.operator(x.movedim(-1, 0))
        return y.movedim(0, -1)

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        return self.operator.adjoint(y.movedim(-1, 0)).movedim(0, -1)


class MonarchInPairs(InPairs):
    """The real form of a Monarch matrix: one of rank 2 r on (k, i, 2), whose result (l, 2, j) is put in order."""

    def __init__(self, operator: Monarch) -> None:
        super().__init__(operator)
        with torch.no_grad():
            R, L = (_rho(factor) for factor in operator.factors())
        R = R.permute(0, 1, 2, 4, 3, 5).flatten(4).flatten(2, 3)  # (K, J, 2 r, 2 I)
        L = L.permute(0, 1, 4, 2, 3, 5).flatten(4).flatten(1, 2)  # (J, 2 O, K, 2 r)
        self.monarch = Monarch.from_factors(R, L)
        self.columns = operator.blocks[1]

    def multiply(self, x: Tensor) -> Tensor:
        y: Tensor = self.monarch(_padded(x, self.monarch.in_features).flatten(-2))
        return _split(y, -1, (-1, 2, self.columns)).mT.flatten(-3, -2)[..., : self.out_shape[0], :]

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        grid = _split(_padded(y, self.monarch.out_features), -2, (-1, self.columns)).mT
        return _split(self.monarch.adjoint(grid.flatten(-3)), -1, (-1, 2))[..., : self.in_shape[0], :]


class GridInPairs(InPairs):
    """The real form of a grid operator: that of its Monarch matrix."""

    def __init__(self, operator: GridMonarch) -> None:
        super().__init__(operator)
        self.monarch, self.columns_first = in_pairs(operator.monarch), operator.columns_first

    def multiply(self, x: Tensor) -> Tensor:
        return self._unfolded(self.monarch(self._turned(x).flatten(-3, -2)), self.out_shape)

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        return self._unfolded(self.monarch.adjoint(self._turned(y).flatten(-3, -2)), self.in_shape)

    def _unfolded(self, y: Tensor, shape: tuple[int, ...]) -> Tensor:
        h, w, _ = shape
        return self._turned(_split(y, -2, (w, h) if self.columns_first else (h, w)))

    def _turned(self, x: Tensor) -> Tensor:
        return x.transpose(-3, -2) if self.columns_first else x


class SeparableInPairs(InPairs):
    """The real form of a separable operator: those of its axes."""

    def __init__(self, operator: Separable) -> None:
        super().__init__(operator)
        self.axes = nn.ModuleList(in_pairs(cast(LinearOperator, axis)) for axis in operator.axes)

    def flops(self, batch: int = 1) -> int:
        total, lines = 0, batch * self.in_features // 2
        for axis in reversed(self._operators()):
            lines //= axis.in_shape[0]
            total += axis.flops(lines)
            lines *= axis.out_shape[0]
        return total

    def multiply(self, x: Tensor) -> Tensor:
        for at, axis in reversed(list(enumerate(self._operators(), start=-len(self.axes) - 1))):
            x = axis(x.movedim(at, -2)).movedim(-2, at)
        return x

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        for at, axis in enumerate(self._operators(), start=-len(self.axes) - 1):
            y = axis.adjoint(y.movedim(at, -2)).movedim(-2, at)
        return y

    def _operators(self) -> list[LinearOperator]:
        return cast(list[LinearOperator], list(self.axes))


@in_pairs.register
def _(operator: Monarch) -> LinearOperator:
    return MonarchInPairs(operator) if operator.is_complex else EachPart(operator.real_part())


@in_pairs.register
def _(operator: Permutation | Resize | Stride) -> LinearOperator:
    return EachPart(operator)


@in_pairs.register
def _(operator: GridMonarch) -> LinearOperator:
    return GridInPairs(operator)


@in_pairs.register
def _(operator: Separable) -> LinearOperator:
    return SeparableInPairs(operator)


@in_pairs.register
def _(operator: Product) -> LinearOperator:
    return Product(*(in_pairs(cast(LinearOperator, link)) for link in operator.links))


def _rho(numbers: Tensor) -> Tensor:
    """The matrices rho(c) of complex numbers, on two new axes (out, in); those of real ones are multiples of 1."""
    re, im = (numbers.real, numbers.imag) if numbers.is_complex() else (numbers, torch.zeros_like(numbers))
    return torch.stack((torch.stack((re, -im), -1), torch.stack((im, re), -1)), -2)


def _padded(x: Tensor, numbers: int) -> Tensor:
    """Pairs (..., n, 2) with zeros at the end, so many real numbers in all."""
    missing = numbers // 2 - x.shape[-2]
    return zero_pad(x, (0, 0, 0, missing)) if missing else x


def _split(x: Tensor, axis: int, shape: tuple[int, ...]) -> Tensor:
    """One axis as several."""
    split: Tensor = x.unflatten(axis, shape)  # type: ignore[no-untyped-call]
    return split
