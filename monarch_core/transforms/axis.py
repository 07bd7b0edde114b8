"""The truncated transform of one axis: n real points to few complex modes, and back to as many points or others.

    forward    z[k] = sum_t x[t] A[t, k]
    back       y[t] = Re sum_k z[k] S[k, t]

A neural operator keeps few frequencies (12 of 64 points), so A is a small matrix and its product with a field one
matrix multiplication: on a CPU that is faster than an FFT of which most is thrown away. Complex numbers are pairs of
real ones, on a last axis of 2; so both directions are real linear operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ..checks import tensor, whole
from ..linear_operator import LinearOperator, checked_dtype
from ..multiply import check_types, is_traced
from ..pairs import real_part_matrix, rearranged, traced
from .starts import Start, find_start
from .tables import Learn, MatrixTable, Table, interpolated, make_tables


class RealOperator(LinearOperator):
    """What the truncated transforms share: real tables, which take complex inputs part by part."""

    def tables(self) -> list[Table]:
        return [module for module in self.modules() if isinstance(module, Table)]

    @property
    def dtype(self) -> torch.dtype:
        some: Tensor = next(t for t in (*self.parameters(), *self.buffers()) if t.is_floating_point())
        return some.dtype

    def multiply(self, x: Tensor) -> Tensor:
        if x.is_complex():
            return torch.complex(self.multiply(x.real), self.multiply(x.imag))
        return self.multiply_real(x)

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        if y.is_complex():
            return torch.complex(self.multiply_adjoint(y.real), self.multiply_adjoint(y.imag))
        return self.multiply_adjoint_real(y)

    def multiply_real(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def multiply_adjoint_real(self, y: Tensor) -> Tensor:
        raise NotImplementedError


class Transform(nn.Module):
    """A truncated transform and its way back, for networks: analyse, mix the channels of each mode, synthesise."""

    start: Start


class AxisAnalysis(RealOperator):
    """Forward: n real points to (modes, 2); with groups of channels (groups, n) to (groups, modes, 2)."""

    def __init__(self, table: Table, n: int, modes: int, groups: int = 1) -> None:
        super().__init__()
        self.table, self.groups = table, groups
        self.in_shape, self.out_shape = (n,), (modes, 2)
        if groups > 1:
            self.in_shape, self.out_shape = (groups, n), (groups, modes, 2)

    def matrix(self) -> Tensor:
        """The real matrices (groups, n, 2 modes)."""
        return self.table.value().flatten(2)

    def flops(self, batch: int = 1) -> int:
        return 2 * batch * self.in_features * self.out_shape[-2] * 2

    def multiply_real(self, x: Tensor) -> Tensor:
        return _by_groups(x, self.matrix(), self.groups).reshape(
            *x.shape[: x.ndim - len(self.in_shape)], *self.out_shape
        )

    def multiply_adjoint_real(self, y: Tensor) -> Tensor:
        return _by_groups(y.flatten(-2), self.matrix().mT, self.groups)


class AxisSynthesis(RealOperator):
    """Back: (modes, 2) to n real points; with groups of channels (groups, modes, 2) to (groups, n)."""

    def __init__(self, table: Table, n: int, modes: int, groups: int = 1) -> None:
        super().__init__()
        self.table, self.groups = table, groups
        self.in_shape, self.out_shape = (modes, 2), (n,)
        if groups > 1:
            self.in_shape, self.out_shape = (groups, modes, 2), (groups, n)

    def matrix(self) -> Tensor:
        """The real matrices (groups, 2 modes, n)."""
        return real_part_matrix(self.table.value())

    def flops(self, batch: int = 1) -> int:
        return 2 * batch * self.out_features * self.in_shape[-2] * 2

    def multiply_real(self, x: Tensor) -> Tensor:
        return _by_groups(x.flatten(-2), self.matrix(), self.groups)

    def multiply_adjoint_real(self, y: Tensor) -> Tensor:
        return _by_groups(y, self.matrix().mT, self.groups).reshape(
            *y.shape[: y.ndim - len(self.out_shape)], *self.in_shape
        )


def _by_groups(x: Tensor, matrices: Tensor, groups: int) -> Tensor:
    """x (..., groups, in), or (..., in) where there is one group, times each group's matrix."""
    check_types(x, matrices)
    if groups == 1:
        return x @ matrices[0]
    return (x[..., None, :] @ matrices)[..., 0, :]


class AxisTransform(Transform):
    """The transform of one axis and the way back, for fields whose channels are the first axis.

    Arguments:
        n: points; the way back leads to `out` points, n by default.
        modes: complex numbers kept.
        start: where it begins, by name (`start_names()`), or a `Start`.
        learn: "fixed", "matrix" or "monarch".
        groups: groups of channels, each with matrices of its own.

    >>> axis = AxisTransform(64, 12, learn="matrix")
    >>> modes = axis.analyse(torch.randn(20, 5, 64, 64))
    >>> modes.shape, axis.synthesise(modes, (5, 64)).shape
    (torch.Size([12, 20, 320, 2]), torch.Size([20, 5, 64, 64]))
    """

    def __init__(
        self,
        n: int,
        modes: int,
        *,
        out: int | None = None,
        start: str | Start = "dft",
        learn: Learn = "fixed",
        groups: int = 1,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if learn in ("per-frequency", "per-point"):
            raise ValueError(
                f"one axis alone has no other to learn {learn}; choose fixed, matrix or monarch."
            )
        self.n = whole(n, "the number of points", least=1)
        self.out = self.n if out is None else whole(out, "the number of points of the way back", least=1)
        self.modes = whole(modes, "the number of modes", least=1)
        self.groups = whole(groups, "the number of groups", least=1)
        self.start, self.learn = find_start(start), learn
        there, back = make_tables(
            self.start,
            learn,
            (self.n, self.out),
            modes,
            first=True,
            lines=(1, 1),
            groups=groups,
            dtype=real_dtype(dtype, "AxisTransform"),
        )
        self.analysis = AxisAnalysis(there, self.n, modes, groups)
        self.synthesis = AxisSynthesis(back, self.out, modes, groups)

    def analyse(self, lines: Tensor) -> Tensor:
        """(channel, ..., point) to (mode, channel, line, 2): all axes between are lines."""
        if not is_traced() and (
            tensor(lines, "the field").ndim < 2 or lines.shape[-1] != self.n or lines.shape[0] % self.groups
        ):
            raise ValueError(
                f"this transform takes (channel, ..., {self.n}), with a multiple of {self.groups} channels; got shape "
                f"{tuple(lines.shape)}."
            )
        channels, n, matrix = lines.shape[0], lines.shape[-1], self.analysis.matrix()
        check_types(lines, matrix)
        count = lines.numel() // (channels * n)
        z = torch.bmm(lines.reshape(self.groups, -1, n), matrix)
        z = z.view(*z.shape[:2], self.modes, 2)
        return rearranged(z, "cbm", "mcb", c=channels, b=count, m=self.modes)

    def synthesise(self, modes: Tensor, lines: tuple[int, ...]) -> Tensor:
        """(mode, channel, line, 2) to (channel, *lines, point)."""
        if not traced() and (
            tensor(modes, "the modes", axes=4).shape[::3] != (self.modes, 2)
            or modes.shape[1] % self.groups
            or modes.shape[2] != prod(lines)
        ):
            raise ValueError(
                f"this transform takes modes ({self.modes}, channel, {prod(lines)} lines, 2), with a multiple of "
                f"{self.groups} channels; got shape {tuple(modes.shape)}."
            )
        m, channels, count, _ = modes.shape
        z = rearranged(modes, "mcb", "cbm", m=m, c=channels, b=count)
        matrix = self.synthesis.matrix()
        check_types(z, matrix)
        return torch.bmm(z.view(self.groups, -1, 2 * m), matrix).view(channels, *lines, self.out)

    def flops(self, channels: int, lines: int) -> int:
        """Real operations of both directions and of a channel matrix per mode between, for so many lines."""
        both = 2 * 2 * 2 * self.modes * lines * channels * (self.n + self.out) // 2
        return both + 8 * self.modes * lines * channels**2

    def not_resampled_because(self, n: int) -> str | None:
        """Why the transform cannot move to n points; None if it can."""
        if reason := stays_because(self.start, (self.learn,)):
            return reason
        return f"{self.modes} modes need at least twice as many points" if n < 2 * self.modes else None

    def resampled(self, n: int, out: int | None = None) -> AxisTransform:
        """The same transform for n points and `out` on the way back: learned functions by their Fourier series."""
        reason = self.not_resampled_because(n)
        if reason:
            raise ValueError(f"no transform for {n} points: {reason}.")
        learn: Learn = "fixed" if self.learn == "fixed" else "matrix"
        new = AxisTransform(
            n, self.modes, out=out, learn=learn, groups=self.groups, dtype=self.analysis.dtype
        )
        resample((self.analysis.table, new.analysis.table), 1, n, self.n / n)
        resample((self.synthesis.table, new.synthesis.table), 2, new.out, self.n / n)
        return new


def real_dtype(dtype: torch.dtype | None, what: str) -> torch.dtype:
    """`dtype`, or the default one, for tables whose complex numbers are pairs of real ones."""
    found = checked_dtype(dtype, False, what)
    if found.is_complex:
        raise TypeError(f"{what} has pairs of real numbers; got dtype={found}. Pass {found.to_real()}.")
    return found


def stays_because(start: Start, learn: Sequence[Learn]) -> str | None:
    """Why a transform with this start, which learns so along its axes, stays on its grid; None if it can move."""
    if start.drawn and "fixed" in learn:
        return "what is drawn at random and does not learn is drawn for one grid"
    return start.stays_because


def resample(tables: Any, axis: int, points: int, shrink: float) -> None:
    """Make the second of two tables the first one's, its functions (along `axis`) at other points."""
    old, new = tables
    if isinstance(new, MatrixTable) and new.learned:
        new.become(interpolated(old.value().detach(), points, axis) * shrink**0.5)
