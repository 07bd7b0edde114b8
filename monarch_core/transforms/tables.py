"""The table of a truncated transform along one axis, and the ways in which it may learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ..linear_operator import LinearOperator, Product
from ..monarch import Monarch
from .starts import Start, Waves

Learn = Literal["fixed", "matrix", "monarch", "per-frequency", "per-point"]
"""What learns along an axis.

fixed: nothing; the transform stays where it starts.
matrix: one matrix for all lines, or one for each group of channels.
monarch: the same, as the factors of a Monarch matrix of the axis's own length.
per-frequency: one matrix for each frequency of the other axis, which is transformed first.
per-point: one matrix for each point of the other axis, which is transformed second.
"""


class Table(nn.Module, ABC):
    """Complex matrices in pairs, (blocks, in, out, 2): a block per group of channels or, if `per_line`, per line."""

    per_line: bool = False
    learned: bool = True

    @abstractmethod
    def value(self) -> Tensor: ...


class MatrixTable(Table):
    """The start, and unless fixed a trainable deviation from it, zero at first: its decay pulls towards the start."""

    start: Tensor

    def __init__(self, start: Tensor, learn: Learn, blocks: int, drawn: bool, dtype: torch.dtype) -> None:
        super().__init__()
        self.learned = learn != "fixed"
        self.per_line = learn in ("per-frequency", "per-point") or len(start) > 1
        self.blocks = blocks if self.learned or not self.per_line else len(start)
        self.register_buffer("start", start.to(dtype), persistent=drawn)
        if self.learned:
            self.change = nn.Parameter(torch.zeros(blocks, *start.shape[1:], dtype=dtype))

    def value(self) -> Tensor:
        if self.learned:
            return self.start + self.change
        return self.start.expand(self.blocks, -1, -1, -1)

    @torch.no_grad()
    def become(self, value: Tensor) -> None:
        """Take this value, as a deviation from the start."""
        self.change.copy_(value - self.start)

    def extra_repr(self) -> str:
        what = "learned" if self.learned else "fixed"
        return f"{' x '.join(str(n) for n in (self.blocks, *self.start.shape[1:-1]))}, {what}"


class MonarchTable(Table):
    """The table cut out of square Monarch matrices, whose factors are their starts plus trainable deviations."""

    R_start: Tensor
    L_start: Tensor
    R_change: nn.Parameter
    L_change: nn.Parameter
    rows: Tensor
    columns: Tensor

    def __init__(
        self, start: Waves, n: int, modes: int, first: bool, inverse: bool, groups: int, stretch: float
    ) -> None:
        super().__init__()
        self.start_of = start
        self.modes, self.first, self.inverse, self.stretch = modes, first, inverse, stretch
        made = [_monarch_between_reorderings(start.monarch(n, inverse)) for _ in range(groups)]
        monarch, rows, columns = made[0]
        self.is_complex = monarch.is_complex
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)
        for name in ("R", "L"):
            factors = torch.stack([getattr(monarch, name).detach() for monarch, _, _ in made])
            self.register_buffer(f"{name}_start", factors, persistent=start.drawn)
            self.register_parameter(f"{name}_change", nn.Parameter(torch.zeros_like(factors)))

    def value(self) -> Tensor:
        R, L = self.R_start + self.R_change, self.L_start + self.L_change
        whole = _complex_matrices(R, L) if self.is_complex else _matrices(R, L)
        whole = whole.index_select(1, self.rows).index_select(2, self.columns)
        return self.stretch * self.start_of.cut(whole, self.modes, self.first, self.inverse)


def _monarch_between_reorderings(operator: LinearOperator) -> tuple[Monarch, Tensor, Tensor]:
    """Of an operator P M Q with reorderings P and Q: M, and where its rows and its columns are found in M's."""
    links = cast(list[LinearOperator], list(operator.links) if isinstance(operator, Product) else [operator])
    monarchs = [link for link in links if isinstance(link, Monarch)]
    if len(monarchs) != 1 or monarchs[0].in_shape != operator.in_shape:
        raise ValueError(f"a start has to be one Monarch operator between reorderings; got {operator}.")
    at = links.index(monarchs[0])
    rows, columns = torch.arange(operator.out_features), torch.arange(operator.in_features)
    for link in reversed(links[:at]):
        rows = link(rows)
    for link in reversed(links[at + 1 :]):
        columns = link(columns)
    return monarchs[0], rows, columns.argsort()


def _matrices(R: Tensor, L: Tensor) -> Tensor:
    """The matrices (groups, out, in) of factors R (groups, K, J, r, I) and L (groups, J, O, K, r)."""
    return torch.einsum("gjlkr,gkjri->gljki", L, R).flatten(3).flatten(1, 2)


def _complex_matrices(R: Tensor, L: Tensor) -> Tensor:
    """The same of factors in pairs, in real arithmetic."""
    (R_re, R_im), (L_re, L_im) = R.unbind(-1), L.unbind(-1)
    re = _matrices(R_re, L_re) - _matrices(R_im, L_im)
    im = _matrices(R_re, L_im) + _matrices(R_im, L_re)
    return torch.stack((re, im), -1)


def interpolated(functions: Tensor, n: int, axis: int) -> Tensor:
    """Complex functions in pairs, periodic along `axis`, at n points instead: their Fourier series, cut or padded."""
    there = functions.shape[axis]
    series = torch.fft.fft(torch.view_as_complex(functions.contiguous()), dim=axis, norm="forward")
    series = torch.fft.fftshift(series, dim=axis).movedim(axis, -1)
    zero, before = there // 2, n // 2
    series = pad(series, (before - zero, (n - before) - (there - zero)))
    series = torch.fft.ifftshift(series, dim=-1).movedim(-1, axis)
    return torch.view_as_real(torch.fft.ifft(series, dim=axis, norm="forward"))


def make_tables(
    start: Start,
    learn: Learn,
    sizes: tuple[int, int],
    modes: int,
    *,
    first: bool,
    lines: tuple[int, int],
    groups: int,
    dtype: torch.dtype,
) -> tuple[Table, Table]:
    """Forward and back along one axis, from sizes[0] points and to sizes[1].

    lines: how many lines there are of the other axis, on the way forward and back: points if this axis goes first,
    frequencies if it goes second.

    An axis of a single point, that across a line, has one mode and stays as it is.
    """
    n, out = sizes
    if learn not in get_args(Learn):
        raise ValueError(f"an axis learns as one of {', '.join(get_args(Learn))}; got {learn!r}.")
    if sizes == (1, 1):  # across a line: one point, one mode, nothing to transform
        one = torch.tensor([1.0, 0.0], dtype=torch.float64).view(1, 1, 1, 2)
        there, back = (MatrixTable(one, "fixed", groups, False, dtype) for _ in range(2))
        return there, back
    if 2 * modes > min(sizes):
        raise ValueError(f"{modes} modes need at least {2 * modes} points per side; there are {min(sizes)}.")
    if learn == "monarch":
        if not isinstance(start, Waves):
            raise ValueError("this start has no Monarch form along each axis; learn it per frequency.")
        inward = MonarchTable(start, n, modes, first, False, groups, 1.0)
        outward = MonarchTable(start, out, modes, first, True, groups, (out / n) ** 0.5)
        return inward.to(dtype), outward.to(dtype)
    if start.per_frequency and not first and learn == "matrix":
        raise ValueError(
            "this start has a matrix for each frequency of the other axis; learn it per frequency."
        )
    tables = start.first(n, out, modes) if first else start.second(n, out, modes, lines[0])
    blocks = lines if learn in ("per-frequency", "per-point") else (groups, groups)
    there, back = (MatrixTable(t, learn, b, start.drawn, dtype) for t, b in zip(tables, blocks, strict=True))
    return there, back
