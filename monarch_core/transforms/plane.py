"""The truncated transform of a plane: a real field to few complex modes, and back to its grid or another.

    forward    z[s, k] = sum_t x[s, t] A1[t, k]          the first axis: a real field, m modes
               f[k, l] = sum_s z[s, k] A2[s, l]          the second: 2m modes
    back       g[k, s] = sum_l f[k, l] S2[l, s]
               y[s, t] = Re sum_k g[k, s] S1[k, t]

Rows, then columns: with complex numbers as pairs of real ones, each direction is one real grid Monarch matrix of rank 2
(`GridMonarch`; re and im are the rank). In it every row s may have its own A1 and every frequency k its own A2. The
Fourier, cosine and sine transforms have the same for all; the spherical harmonic one has an A2, a Legendre matrix, per
order k. What learns is a choice for each axis (`tables.Learn`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor, arange

from ..checks import pair, tensor, whole
from ..monarch import Monarch
from ..multiply import check_types, is_traced
from ..pairs import adjoint, complex_kernels, product, real_part_matrix, rearranged
from ..reordering import Permutation
from .axis import RealOperator, Transform, real_dtype, resample, stays_because
from .starts import Latitudes, Start, find_start
from .tables import Learn, Table, make_tables

Pair = tuple[int, int]


class PlaneOperator(RealOperator):
    """One direction: the tables of the axis transformed first and of the second, on a grid (x, y).

    A field is (batch, x, y, channel), its modes are (mode, channel, batch, 2), mode = (k, l) with k of the axis that is
    transformed first. As a linear operator it acts on (x, y) and (k, l, 2), or with groups of channels, each with
    its own matrices, on (groups, x, y) and (groups, k, l, 2).
    """

    def __init__(
        self,
        first: Table,
        second: Table,
        grid: Pair,
        kept: Pair,
        *,
        groups: int = 1,
        x_first: bool = False,
        sheared: bool = False,
    ) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.grid, self.kept, self.groups, self.x_first = grid, kept, groups, x_first
        self.shear = shear(grid) if sheared else None

    def _shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        leading = (self.groups,) if self.groups > 1 else ()
        return (*leading, *self.grid), (*leading, *self.kept, 2)

    def flops(self, batch: int = 1) -> int:
        (x, y), (k, l) = self.grid, self.kept
        lines = y if self.x_first else x  # points of the second axis
        return batch * self.groups * (2 * x * y * 2 * k + 8 * k * lines * l)

    # In the two methods below axes have letters: f for the fields (channels and batch), t and k for points and
    # frequencies of the axis transformed first, s and l for those of the second. A matrix product wants its lines
    # first in memory if each has a matrix of its own, and the fields if they share one.

    def _to_modes(self, field: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """By real matrices (blocks, t, 2 k) along the first axis and pairs (blocks, s, l, 2) along the second."""
        check_types(field, first)
        batch, rows, columns, channels = field.shape
        x = field.permute(3, 0, 1, 2).reshape(channels * batch, rows, columns)
        if self.shear is not None:
            x = self.shear(x.flatten(1)).view(x.shape)
        x = x.mT if self.x_first else x
        (f, s, t), (k, l) = x.shape, self.kept
        x = (
            x.transpose(0, 1)
            if self.first.per_line
            else x.reshape(first.shape[0], f * s // first.shape[0], t)
        )
        z = torch.bmm(x, first)
        have, want = "sfk" if self.first.per_line else "fsk", "kfs" if self.second.per_line else "fks"
        z = rearranged(z.view(*z.shape[:2], k, 2), have, want, f=f, s=s, k=k)
        z = product(z.view(second.shape[0], k * f // second.shape[0], s, 2), second)
        z = rearranged(z, want[:2] + "l", "klf", f=f, k=k, l=l)
        return z.view(k * l, channels, batch, 2)

    def _to_field(self, modes: Tensor, second: Tensor, first: Tensor) -> Tensor:
        """By pairs (blocks, l, s, 2) along the second axis and real matrices (blocks, 2 k, t) along the first."""
        check_types(modes, first)
        _, channels, batch, _ = modes.shape
        f, (k, l), (s, t) = channels * batch, self.kept, self.grid[::-1] if self.x_first else self.grid
        have = "kf" if self.second.per_line else "fk"
        z = rearranged(modes, "klf", have + "l", f=f, k=k, l=l)
        z = product(z.view(second.shape[0], k * f // second.shape[0], l, 2), second)
        want = "sfk" if self.first.per_line else "fsk"
        z = rearranged(z, have + "s", want, f=f, k=k, s=s)
        x = torch.bmm(z.view(first.shape[0], s * f // first.shape[0], 2 * k), first)
        lines_first = self.first.per_line
        x = x.view(s, channels, batch, t).movedim(0, 2) if lines_first else x.view(channels, batch, s, t)
        x = x.mT if self.x_first else x
        if self.shear is not None:
            x = self.shear.adjoint(x.flatten(2)).view(x.shape)
        return x.permute(1, 2, 3, 0)

    def _check_monarch(self) -> None:
        why = {
            "x goes first in it": self.x_first,
            "it is sheared": self.shear is not None,
            "its groups of channels have matrices of their own": self.groups > 1,
        }
        reason = next((words for words, holds in why.items() if holds), None)
        if reason:
            raise ValueError(f"this transform is no single Monarch matrix from (x, y): {reason}.")

    def _as_field(self, x: Tensor) -> Tensor:
        batch = prod(x.shape[: x.ndim - len(self._shapes()[0])])
        return x.reshape(batch, self.groups, *self.grid).permute(0, 2, 3, 1)

    def _as_modes(self, y: Tensor) -> Tensor:
        batch = prod(y.shape[: y.ndim - len(self._shapes()[1])])
        return y.reshape(batch, self.groups, prod(self.kept), 2).permute(2, 1, 0, 3)

    def _from_field(self, field: Tensor, like: Tensor) -> Tensor:
        grid, modes = self._shapes()
        return field.permute(0, 3, 1, 2).reshape(*like.shape[: like.ndim - len(modes)], *grid)

    def _from_modes(self, made: Tensor, like: Tensor) -> Tensor:
        grid, modes = self._shapes()
        return made.permute(2, 1, 0, 3).reshape(*like.shape[: like.ndim - len(grid)], *modes)


class PlaneAnalysis(PlaneOperator):
    """Forward: a real field to its modes."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.in_shape, self.out_shape = self._shapes()

    def of_field(self, field: Tensor) -> Tensor:
        """(batch, x, y, channel) to (mode, channel, batch, 2). Channels that are slowest in memory spare a copy."""
        return self._to_modes(field, self.first.value().flatten(2), self.second.value())

    def multiply_real(self, x: Tensor) -> Tensor:
        return self._from_modes(self.of_field(self._as_field(x)), x)

    def multiply_adjoint_real(self, y: Tensor) -> Tensor:
        second, first = adjoint(self.second.value()), self.first.value().flatten(2).mT
        return self._from_field(self._to_field(self._as_modes(y), second, first), y)

    def monarch(self) -> Monarch:
        """The same as one Monarch matrix of rank 2, from (x, y) to (l, re or im, k); where y goes first, without shear
        and groups."""
        self._check_monarch()
        (rows, _), (k, _) = self.grid, self.kept
        R = self.first.value().permute(0, 2, 3, 1).expand(rows, -1, -1, -1)
        L = _times_one_and_i(self.second.value()).permute(0, 3, 4, 2, 1).flatten(1, 2).expand(k, -1, -1, -1)
        return Monarch.from_factors(R, L)


class PlaneSynthesis(PlaneOperator):
    """Back: modes to a real field."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.out_shape, self.in_shape = self._shapes()

    def of_modes(self, modes: Tensor) -> Tensor:
        """(mode, channel, batch, 2) to (batch, x, y, channel), channels slowest in memory."""
        return self._to_field(modes, self.second.value(), real_part_matrix(self.first.value()))

    def multiply_real(self, x: Tensor) -> Tensor:
        return self._from_field(self.of_modes(self._as_modes(x)), x)

    def multiply_adjoint_real(self, y: Tensor) -> Tensor:
        first, second = real_part_matrix(self.first.value()).mT, adjoint(self.second.value())
        return self._from_modes(self._to_modes(self._as_field(y), first, second), y)

    def monarch(self) -> Monarch:
        """The same as one Monarch matrix of rank 2, from (k, l, re or im) to (y, x); where y goes first, without shear
        and groups."""
        self._check_monarch()
        (rows, _), (k, _) = self.grid, self.kept
        R = _times_one_and_i(self.second.value()).permute(0, 3, 4, 2, 1).flatten(3).expand(k, -1, -1, -1)
        re, im = self.first.value().unbind(-1)
        L = torch.stack((re, -im), -1).permute(0, 2, 1, 3).expand(rows, -1, -1, -1)
        return Monarch.from_factors(R, L)


def _times_one_and_i(table: Tensor) -> Tensor:
    """(blocks, in, out, 2) to (blocks, 2, in, out, 2): what the real and the imaginary part of an input contribute."""
    re, im = table.unbind(-1)
    return torch.stack((table, torch.stack((-im, re), -1)), 1)


def shear(grid: Pair) -> Permutation:
    """From f(x, y) to f(s - y, y) as a function of s = x + y and y, on a torus of n x n points, row by row.

    A function of x + y alone then depends on the first coordinate alone.

    >>> shear((3, 3))(torch.tensor([0, 1, 2, 1, 2, 0, 2, 0, 1]))
    tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])
    """
    n, columns = pair(grid, "the grid")
    if n != columns:
        raise ValueError(f"sheared coordinates need a torus of as many rows as columns; got {n} x {columns}.")
    s, y = arange(n)[:, None], arange(n)
    return Permutation(((s - y) % n * n + y).flatten())


def _two(value: Any, what: str) -> Any:
    """A word for both axes, or one for each."""
    if isinstance(value, (str, bool)):
        return value, value
    if not isinstance(value, Sequence) or len(value) != 2:
        raise TypeError(f"{what} is one word for both, or two; got {value!r}.")
    return value[0], value[1]


class PlaneTransform(Transform):
    """The truncated transform of a plane and its way back, in the layout in which networks hold fields.

    Arguments:
        grid: points (x, y); the way back leads to the points `out`, those of the grid by default. A line is (n, 1): the
            transform is then that of x alone, with m modes.
        modes: m complex numbers along the axis transformed first and 2 m along the second (frequencies of both
            signs); or a number for x and one for y.
        start: where it begins, by name (`start_names()`), or a `Start`.
        learn: what learns along x and along y, or one word for both (see `tables.Learn`). y is transformed first,
            unless x learns per point or y per frequency.
        groups: groups of channels, each with matrices of its own; one where an axis has matrices per line.
        shear: whether the field's coordinates are sheared to s = x + y and y on the way in, and back on the way out;
            one word, or two if a network stays in sheared coordinates between.
        latitudes: the grid of a sphere, for "sht".

    >>> plane = PlaneTransform((64, 64), 12, learn=("per-frequency", "fixed"), shear=True)
    >>> modes = plane.analyse(torch.randn(5, 64, 64, 20))
    >>> modes.shape, plane.synthesise(modes).shape
    (torch.Size([288, 20, 5, 2]), torch.Size([5, 64, 64, 20]))
    """

    analysis: PlaneAnalysis
    synthesis: PlaneSynthesis

    def __init__(
        self,
        grid: Pair,
        modes: int | Sequence[int],
        *,
        out: Pair | None = None,
        start: str | Start = "dft",
        learn: Learn | Sequence[Learn] = "fixed",
        groups: int = 1,
        shear: bool | Sequence[bool] = False,
        latitudes: Latitudes = "legendre-gauss",
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.grid = pair(grid, "the grid")
        self.out = self.grid if out is None else pair(out, "the grid of the way back")
        both = modes if isinstance(modes, Sequence) else (modes, modes)
        self.modes: Pair = pair(both, "the numbers of modes")
        self.start = find_start(start).on_latitudes(latitudes)
        self.learn: tuple[Learn, Learn] = _two(learn, "learn")
        self.groups = whole(groups, "the number of groups", least=1)
        self.shear: tuple[bool, bool] = _two(shear, "shear")
        x_first = self.grid[1] == 1 or self._x_goes_first()
        a, b = (0, 1) if x_first else (1, 0)  # the axes in the order in which they are transformed
        sizes = [(self.grid[axis], self.out[axis]) for axis in (0, 1)]
        kept = self.modes[a], 1 if sizes[b] == (1, 1) else 2 * self.modes[b]
        dtype = real_dtype(dtype, type(self).__name__)
        in_order = self.start.where_x_goes_first() if x_first else self.start
        make = partial(make_tables, in_order, groups=groups, dtype=dtype)
        second = make(self.learn[b], sizes[b], self.modes[b], first=False, lines=(kept[0], kept[0]))
        first = make(self.learn[a], sizes[a], self.modes[a], first=True, lines=sizes[b])
        if groups > 1 and any(table.per_line for table in (*first, *second)):
            raise ValueError(
                f"an axis with a matrix for each line takes one group of channels, not {groups}."
            )
        layout = {"groups": groups, "x_first": x_first}
        self.analysis = PlaneAnalysis(first[0], second[0], self.grid, kept, sheared=self.shear[0], **layout)
        self.synthesis = PlaneSynthesis(first[1], second[1], self.out, kept, sheared=self.shear[1], **layout)

    def _x_goes_first(self) -> bool:
        x, y = self.learn
        x_first, y_first = (
            here == "per-point" or there == "per-frequency" for here, there in ((x, y), (y, x))
        )
        if x_first and y_first:
            raise ValueError(
                f"one axis is transformed before the other, so learn=({x!r}, {y!r}) cannot be; per-frequency goes with "
                "any of fixed, matrix, monarch and per-point on the other axis."
            )
        return x_first

    @property
    def num_modes(self) -> int:
        """How many modes a channel has, each with a channel matrix of its own in a spectral layer."""
        return prod(self.analysis.kept)

    def flops(self, channels: int, out: int) -> int:
        """Real operations of a field with so many channels forward, one with `out` channels back, and of the product
        with a channel matrix per mode between."""
        there, back = self.analysis.flops(channels), self.synthesis.flops(out)
        return (there + back) // self.groups + 8 * prod(self.analysis.kept) * channels * out

    def analyse(self, field: Tensor) -> Tensor:
        """(batch, x, y, channel) to (mode, channel, batch, 2)."""
        self._check(field)
        return self.analysis.of_field(field)

    def _check(self, field: Tensor) -> None:
        if not is_traced() and (
            tensor(field, "a field", axes=4).shape[1:3] != self.grid or field.shape[3] % self.groups
        ):
            raise ValueError(
                f"this transform takes fields (batch, {self.grid[0]}, {self.grid[1]}, channel), with a multiple of "
                f"{self.groups} channels; got shape {tuple(field.shape)}."
            )

    def synthesise(self, modes: Tensor) -> Tensor:
        """(mode, channel, batch, 2) to (batch, x, y, channel)."""
        count = prod(self.synthesis.kept)
        if not is_traced() and tensor(modes, "the modes", axes=4).shape[::3] != (count, 2):
            raise ValueError(
                f"this transform takes modes ({count}, channel, batch, 2); got shape {tuple(modes.shape)}."
            )
        return self.synthesis.of_modes(modes)

    def filtered(self, field: Tensor, multipliers: Tensor) -> Tensor:
        """A field (batch, x, y, channel) whose modes are multiplied by real numbers (mode, channel, 1, part).

        There is one part, or two that multiply the real and the imaginary part of a mode. Where nothing learns and
        nearly all frequencies of a torus are kept, an FFT takes a fraction of the time that matrices take.

        >>> plane, field = PlaneTransform((8, 8), 4, dtype=torch.float64), torch.randn(1, 8, 8, 1, dtype=torch.float64)
        >>> numbers = torch.randn(32, 1, 1, 1, dtype=torch.float64)
        >>> torch.allclose(plane.filtered(field, numbers), plane.synthesise(numbers * plane.analyse(field)))
        True
        """
        if multipliers.shape[-1] > 1 or not self._is_fft(field):
            return self.synthesise(multipliers * self.analyse(field))
        self._check(field)
        rows, (x, y) = self.grid[0], self.modes
        by_mode = multipliers.flatten(1).view(y, 2 * x, -1).permute(2, 1, 0)
        between = by_mode.new_zeros(len(by_mode), rows - 2 * x, y)  # the frequency of x that is not kept
        by_mode = torch.cat((by_mode[:, :x], between, by_mode[:, x:]), 1)
        modes = torch.fft.rfft2(field.permute(0, 3, 1, 2))[..., :y]
        made: Tensor = torch.fft.irfft2(by_mode * modes, s=self.grid)
        return made.permute(0, 2, 3, 1)

    def _is_fft(self, field: Tensor) -> bool:
        """Whether an FFT takes the field to its modes and back: it is fixed, and keeps all but one frequency at most.

        Whoever records operations, or wants real arithmetic, gets matrices.
        """
        if is_traced() or not complex_kernels(field):
            return False
        entire = all(2 * modes >= points - 1 > 0 for modes, points in zip(self.modes, self.grid, strict=True))
        fixed = self.start.fourier and self.learn == ("fixed", "fixed") and not any(self.shear)
        return entire and fixed and self.out == self.grid

    def not_resampled_because(self, grid: Pair) -> str | None:
        """Why the transform cannot move to this grid; None if it can."""
        learn = [learn for learn, points in zip(self.learn, self.grid, strict=True) if points > 1]
        if reason := stays_because(self.start, learn):
            return reason
        if "per-point" in self.learn:
            return "its transform has a matrix for each row of its grid"
        if (grid[1] == 1) != (self.grid[1] == 1):
            return "a transform of a line is none of a plane"
        if any(1 < points < 2 * modes for points, modes in zip(grid, self.modes, strict=True)):
            return f"{max(self.modes)} modes need at least twice as many points"
        return None

    def resampled(self, grid: Pair, out: Pair | None = None) -> PlaneTransform:
        """The same transform on another grid, and back to the grid `out`: learned functions by their Fourier series."""
        reason = self.not_resampled_because(grid)
        if reason:
            raise ValueError(f"no transform for {grid[0]} x {grid[1]} points: {reason}.")
        x, y = (("matrix" if learn == "monarch" else learn) for learn in self.learn)
        new = PlaneTransform(
            grid,
            self.modes,
            out=out,
            learn=(x, y),
            groups=self.groups,
            shear=self.shear,
            dtype=self.analysis.dtype,
        )
        axes = ("first", "second") if self.analysis.x_first else ("second", "first")
        for axis, name in enumerate(axes):
            shrink = self.grid[axis] / grid[axis]
            old_tables, new_tables = (
                [getattr(plane.analysis, name), getattr(plane.synthesis, name)] for plane in (self, new)
            )
            resample((old_tables[0], new_tables[0]), 1, grid[axis], shrink)
            resample((old_tables[1], new_tables[1]), 2, new.out[axis], shrink)
        return new
