"""Operators of zeros and ones, without parameters: reorderings, zero-padding and cropping."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad as zero_pad

from . import checks
from .linear_operator import LinearOperator
from .pairs import traced


class _Reordering(LinearOperator):
    """A matrix of zeros and ones: it multiplies nothing, and fits operands of any dtype."""

    @property
    def dtype(self) -> torch.dtype:
        return torch.bool  # which promotes to every other dtype

    def flops(self, batch: int = 1) -> int:
        return 0


class Permutation(_Reordering):
    """(P x)[m] = x[index[m]].

    >>> Permutation(torch.tensor([2, 0, 1]))(torch.tensor([10.0, 20.0, 30.0]))
    tensor([30., 10., 20.])
    """

    index: Tensor
    inverse: Tensor

    def __init__(self, index: Tensor) -> None:
        super().__init__()
        checks.tensor(index, "the index of a permutation", axes=1)
        if index.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"the index of a permutation should be int32 or int64; got {index.dtype}.")
        if not torch.equal(index.sort().values.long(), torch.arange(len(index), device=index.device)):
            raise ValueError(
                f"a permutation lists each of 0 ... n-1 once; got a tensor {tuple(index.shape)}."
            )
        self.in_shape = self.out_shape = (len(index),)
        self.register_buffer("index", index.clone(), persistent=False)
        self.register_buffer("inverse", index.argsort(), persistent=False)

    def multiply(self, x: Tensor) -> Tensor:
        return _reordered(x, self.index, self.inverse)

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        return _reordered(y, self.inverse, self.index)


class _Reordered(torch.autograd.Function):
    """x[..., index] by `gather`, on a CPU up to several times as fast as `index_select` or `scatter_`.

    Autograd would go back by adding up what meets in a place; a permutation goes back as it came.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(index, inverse)
        ctx.save_for_forward(index)
        return x.gather(-1, index.expand_as(x))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        index, inverse = ctx.saved_tensors
        back: Tensor = _Reordered.apply(gradient, inverse, index)  # type: ignore[no-untyped-call]
        return back, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        (index,) = ctx.saved_tensors
        return tangent.gather(-1, index.expand_as(tangent))


def _reordered(x: Tensor, index: Tensor, inverse: Tensor) -> Tensor:
    if traced() or x.device.type != "cpu":
        return x.index_select(-1, index)
    reordered: Tensor = _Reordered.apply(x, index, inverse)  # type: ignore[no-untyped-call]
    return reordered


class Stride(_Reordering):
    """The paper's P: read x as a grid with `columns` columns, transpose it, lay it out again.

    >>> Stride(6, columns=2)(torch.arange(6))
    tensor([0, 2, 4, 1, 3, 5])
    """

    def __init__(self, n: int, columns: int) -> None:
        super().__init__()
        n = checks.whole(n, "the size of a stride permutation", least=1)
        self.columns = checks.whole(columns, "the number of columns", least=1)
        if n % self.columns:
            raise ValueError(
                f"the number of columns of a stride permutation of size {n} divides {n}; got {columns}."
            )
        self.in_shape = self.out_shape = (n,)

    def multiply(self, x: Tensor) -> Tensor:
        return transposed_grid(x, self.columns)

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        return transposed_grid(y, self.out_features // self.columns)


class Resize(_Reordering):
    """Zeros appended to, or entries dropped from, the end of x.

    >>> Resize(2, 3)(torch.ones(2)), Resize(3, 2)(torch.ones(3))
    (tensor([1., 1., 0.]), tensor([1., 1.]))
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.in_shape = (checks.whole(in_features, "in_features", least=1),)
        self.out_shape = (checks.whole(out_features, "out_features", least=1),)

    def multiply(self, x: Tensor) -> Tensor:
        return zero_pad(x, (0, self.out_features - self.in_features))

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        return zero_pad(y, (0, self.in_features - self.out_features))


def transposed_grid(x: Tensor, columns: int) -> Tensor:
    """The last axis read as a grid with that many columns, transposed and laid out again."""
    return x.reshape(*x.shape[:-1], x.shape[-1] // columns, columns).mT.flatten(-2)
