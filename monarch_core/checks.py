"""Arguments that are not what they should be: each found in one line, and named in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, cast

import torch
from torch import Tensor, nn


def whole(value: Any, what: str, least: int | None = None) -> int:
    """`value` as an int, whatever integer type it has, and not below `least`.

    >>> whole(4, "the rank", least=1)
    4
    """
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{what} should be a whole number; got {value!r}.") from None
    if least is not None and number < least:
        raise ValueError(f"{what} should be at least {least}; got {number}.")
    return number


def sizes(value: Any, what: str, count: int | None = None) -> tuple[int, ...]:
    """A sequence of whole numbers of at least 1, so many if `count` says so."""
    if not isinstance(value, Sequence) or isinstance(value, str) or count not in (None, len(value)):
        expected = "whole numbers" if count is None else f"{count} whole numbers"
        raise TypeError(f"{what} should be a tuple of {expected}; got {value!r}.")
    return tuple(whole(number, f"each number of {what}", least=1) for number in value)


def pair(value: Any, what: str) -> tuple[int, int]:
    """Two whole numbers of at least 1.

    >>> pair([3, 4], "a grid")
    (3, 4)
    """
    return cast(tuple[int, int], sizes(value, what, 2))


def tensor(value: Any, what: str, axes: int | None = None) -> Tensor:
    """A dense tensor, with so many axes if `axes` says so."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{what} should be a tensor; got {type(value).__name__}. torch.as_tensor converts arrays."
        )
    if value.layout != torch.strided:
        raise TypeError(f"{what} should be a dense tensor; got {value.layout}. Call .to_dense() first.")
    if axes is not None and value.ndim != axes:
        kind = {1: "a vector", 2: "a matrix"}.get(axes, f"a tensor with {axes} axes")
        raise ValueError(f"{what} should be {kind}; got a tensor of shape {tuple(value.shape)}.")
    return value


def finite(value: Tensor, what: str) -> Tensor:
    """A tensor with values, none of them NaN or infinite."""
    if value.is_meta:
        raise ValueError(f"{what} has no values: it is on the meta device.")
    if not torch.isfinite(value).all():
        raise ValueError(f"{what} has entries that are not finite (NaN or inf).")
    return value


def module(value: Any, function: str) -> nn.Module:
    """A model."""
    if not isinstance(value, nn.Module):
        raise TypeError(f"{function} takes a model, an nn.Module; got {type(value).__name__}.")
    return value
