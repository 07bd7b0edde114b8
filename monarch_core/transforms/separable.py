"""N-dimensional transforms as one operator per axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from .. import checks
from ..linear_operator import LinearOperator, check_operators, common_dtype, label
from ..sizes import Blocks
from .fourier import dft
from .trigonometric import dct, dst
from .twisted_dft import Norm


class Separable(LinearOperator):
    """A_1 (x) A_2 (x) ...: one operator for each of the last axes.

    >>> from monarch_core import Monarch
    >>> Separable(Monarch(4), Monarch(6, 9))(torch.ones(2, 4, 6)).shape
    torch.Size([2, 4, 9])
    """

    def __init__(self, *axes: LinearOperator) -> None:
        super().__init__()
        check_operators(axes, "a separable operator")
        for axis in axes:
            if len(axis.in_shape) != 1 or len(axis.out_shape) != 1:
                raise ValueError(
                    f"a separable operator has one operator on vectors per axis; got {label(axis)}."
                )
        self.axes = nn.ModuleList(axes)
        self.in_shape = tuple(axis.in_features for axis in axes)
        self.out_shape = tuple(axis.out_features for axis in axes)

    def _operators(self) -> list[LinearOperator]:
        return cast(list[LinearOperator], list(self.axes))

    @property
    def dtype(self) -> torch.dtype:
        return common_dtype(self._operators())

    def flops(self, batch: int = 1) -> int:
        total, lines = 0, batch * self.in_features
        for axis in reversed(self._operators()):
            lines //= axis.in_features
            total += axis.flops(lines)
            lines *= axis.out_features
        return total

    def multiply(self, x: Tensor) -> Tensor:
        for at, axis in reversed(list(enumerate(self._operators(), start=-len(self.axes)))):
            x = axis(x) if at == -1 else axis(x.movedim(at, -1)).movedim(-1, at)
        return x

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        for at, axis in enumerate(self._operators(), start=-len(self.axes)):
            y = axis.adjoint(y) if at == -1 else axis.adjoint(y.movedim(at, -1)).movedim(-1, at)
        return y


def dftn(
    shape: Sequence[int],
    *,
    inverse: bool = False,
    norm: Norm | None = "backward",
    centered: bool = False,
    blocks: Sequence[Blocks | None] | None = None,
    pad: bool = False,
    dtype: torch.dtype | None = None,
) -> Separable:
    """The Fourier transform over the last len(shape) axes, as torch.fft.fftn; `blocks` has one entry an axis."""
    return Separable(
        *(
            dft(n, inverse=inverse, norm=norm, centered=centered, blocks=b, pad=pad, dtype=dtype)
            for n, b in _with_blocks(shape, blocks)
        )
    )


def dft2(
    shape: tuple[int, int],
    *,
    inverse: bool = False,
    norm: Norm | None = "backward",
    centered: bool = False,
    blocks: Sequence[Blocks | None] | None = None,
    pad: bool = False,
    dtype: torch.dtype | None = None,
) -> Separable:
    """The Fourier transform over the last two axes, as torch.fft.fft2 (or ifft2).

    >>> dft2((512, 160), inverse=True, norm="ortho", centered=True).num_parameters  # the paper's mSENSE
    57472
    """
    if len(checks.sizes(shape, "the shape of a transform")) != 2:
        raise ValueError(f"dft2 takes a height and a width; got {shape}. For other dimensions use dftn.")
    return dftn(shape, inverse=inverse, norm=norm, centered=centered, blocks=blocks, pad=pad, dtype=dtype)


def dctn(
    shape: Sequence[int],
    *,
    type: int = 2,
    inverse: bool = False,
    norm: Norm | None = "backward",
    blocks: Sequence[Blocks | None] | None = None,
    pad: bool = False,
    dtype: torch.dtype | None = None,
) -> Separable:
    """The cosine transform over the last len(shape) axes, as scipy.fft.dctn (or idctn)."""
    return Separable(
        *(
            dct(n, type=type, inverse=inverse, norm=norm, blocks=b, pad=pad, dtype=dtype)
            for n, b in _with_blocks(shape, blocks)
        )
    )


def dstn(
    shape: Sequence[int],
    *,
    type: int = 2,
    inverse: bool = False,
    norm: Norm | None = "backward",
    blocks: Sequence[Blocks | None] | None = None,
    pad: bool = False,
    dtype: torch.dtype | None = None,
) -> Separable:
    """The sine transform over the last len(shape) axes, as scipy.fft.dstn (or idstn)."""
    return Separable(
        *(
            dst(n, type=type, inverse=inverse, norm=norm, blocks=b, pad=pad, dtype=dtype)
            for n, b in _with_blocks(shape, blocks)
        )
    )


def _with_blocks(
    shape: Sequence[int], blocks: Sequence[Blocks | None] | None
) -> list[tuple[int, Blocks | None]]:
    shape = checks.sizes(shape, "the shape of a transform")
    if blocks is not None and len(blocks) != len(shape):
        raise ValueError(f"blocks has one entry for each of the {len(shape)} axes; got {len(blocks)}.")
    return list(zip(shape, [None] * len(shape) if blocks is None else blocks, strict=True))
