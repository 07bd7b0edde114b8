"""Where learned transforms start, by name: "dft", "dct", "dst", "sht", "random", and whatever a file here adds.

A start knows one thing: the tables of its truncated transform, forward and back. A new one is a file in this folder
that calls `register_start("name", Start)`; everything that takes a start by name then has it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal

import torch
from torch import Tensor

from ..linear_operator import LinearOperator
from ..monarch import Monarch
from ..pairs import adjoint, from_complex

Tables = tuple[Tensor, Tensor]
"""Forward (blocks, n, kept, 2) and back (blocks, kept, out, 2), complex numbers as pairs in double precision: one block
for all lines of the other axis, or one for each."""

Latitudes = Literal["legendre-gauss", "equiangular"]
"""Grids as torch-harmonics names them: the zeros of a Legendre polynomial, or equal steps from pole to pole."""


class Start(ABC):
    """The truncated transform of a real field, axis by axis.

    The axis that is transformed first keeps `modes` complex numbers. The second keeps 2 `modes`; it sees complex
    numbers, and may have a matrix of its own for each of the first axis's. Forward and back are both of the size of
    orthonormal matrices, so that they learn at the same pace, and a field that the modes hold keeps its height when
    the way back leads to another number of points.
    """

    stays_because: str | None = None
    """Why what is learned from this start cannot move to another grid; None if its functions live on a circle, where
    a Fourier series takes them to any number of points."""
    drawn = False
    """Whether it is drawn at random, and has to be stored with what is learned. Where nothing learns, it stays on its
    grid."""
    per_frequency = False
    """Whether the second axis has a matrix for each frequency of the first."""
    fourier = False
    """Whether it is the discrete Fourier transform along both axes, so that an FFT does the same."""

    @abstractmethod
    def first(self, n: int, out: int, modes: int) -> Tables:
        """The tables of the axis that is transformed first: `modes` numbers are kept."""

    @abstractmethod
    def second(self, n: int, out: int, modes: int, lines: int) -> Tables:
        """Those of the second axis, which keeps 2 `modes` numbers: for all `lines` of the first, or for each."""

    def on_latitudes(self, latitudes: Latitudes) -> Start:
        """The same start on another grid of the sphere; on other domains nothing changes."""
        return self

    def where_x_goes_first(self) -> Start:
        """The same start for a plane that is transformed along x first; it only matters if the axes differ."""
        return self


class Waves(Start):
    """A unitary transform of n points, the same for every line: a table is cut out of its square matrix."""

    @abstractmethod
    def monarch(self, n: int, inverse: bool) -> LinearOperator:
        """The transform, or its inverse, as one Monarch operator behind a reordering."""

    def matrix(self, n: int, inverse: bool) -> Tensor:
        """Its matrix; in double precision where there is a closed form."""
        return self.monarch(n, inverse).to_dense().detach()

    @abstractmethod
    def cut(self, matrices: Tensor, modes: int, first: bool, inverse: bool) -> Tensor:
        """The table of square matrices (blocks, n, n), in pairs (blocks, n, n, 2) if they are complex."""

    def first(self, n: int, out: int, modes: int) -> Tables:
        return self._tables(n, out, modes, first=True)

    def second(self, n: int, out: int, modes: int, lines: int) -> Tables:
        return self._tables(n, out, modes, first=False)

    def _tables(self, n: int, out: int, modes: int, first: bool) -> Tables:
        whole = [self.matrix(n, inverse=False), self.matrix(out, inverse=True)]
        pairs = [from_complex(m, torch.float64) if m.is_complex() else m.double() for m in whole]
        there, back = (
            self.cut(m[None], modes, first, inverse) for m, inverse in zip(pairs, (False, True), strict=True)
        )
        return there, back * (out / n) ** 0.5


class ComplexWaves(Waves):
    """Complex functions, frequency k at k and -k from the end: the second axis keeps both signs, the first one."""

    def cut(self, matrices: Tensor, modes: int, first: bool, inverse: bool) -> Tensor:
        kept = [*range(modes), *(() if first else range(-modes, 0))]
        table = matrices.transpose(1, 2)
        if not inverse:
            return table[:, :, kept]
        table = table[:, kept]
        if first:  # a real field has equal energy at k and -k, of which only k is kept
            weight = table.new_tensor([1.0] + [2.0] * (modes - 1))
            table = table * weight[:, None, None]
        return table


class RealWaves(Waves):
    """Real functions, the smoothest first, of which each axis keeps 2 `modes`.

    On the first axis two neighbours become one complex number, z[k] = sum_t x[t] (c[2k](t) + i c[2k+1](t)), so a plane
    of m x 2m complex modes holds the lowest 2m x 2m functions: as fine a resolution as that of the DFT.
    """

    stays_because = (
        "transforms that began as cosines or sines are not periodic and cannot be resampled as such"
    )

    def cut(self, matrices: Tensor, modes: int, first: bool, inverse: bool) -> Tensor:
        lowest = (matrices if inverse else matrices.mT)[..., : 2 * modes]
        re, im = (lowest[..., 0::2], lowest[..., 1::2]) if first else (lowest, torch.zeros_like(lowest))
        table = torch.stack((re, im), -1)
        return adjoint(table) if inverse else table


class Random(ComplexWaves):
    """Independent complex numbers, of the size of a unitary matrix."""

    drawn = True

    def monarch(self, n: int, inverse: bool) -> LinearOperator:
        return Monarch(n, dtype=torch.get_default_dtype().to_complex())

    def _tables(self, n: int, out: int, modes: int, first: bool) -> Tables:
        kept = modes if first else 2 * modes
        there = torch.randn(n, kept, dtype=torch.complex128) * n**-0.5
        back = there if out == n else torch.randn(out, kept, dtype=torch.complex128) * out**-0.5
        pairs = from_complex(there, torch.float64), from_complex(back.mH * (out / n) ** 0.5, torch.float64)
        return pairs[0][None], pairs[1][None]


class PerAxis(Start):
    """A start for x and another for y, where the domain ends along one axis and is periodic along the other."""

    def __init__(self, x: str | Start, y: str | Start) -> None:
        self.x, self.y = find_start(x), find_start(y)
        self.stays_because = self.x.stays_because or self.y.stays_because
        self.drawn = self.x.drawn or self.y.drawn
        self.fourier = self.x.fourier and self.y.fourier

    def first(self, n: int, out: int, modes: int) -> Tables:
        return self.y.first(n, out, modes)

    def second(self, n: int, out: int, modes: int, lines: int) -> Tables:
        return self.x.second(n, out, modes, lines)

    def where_x_goes_first(self) -> PerAxis:
        return PerAxis(self.y, self.x)


_starts: dict[str, Callable[[], Start]] = {"random": Random}


def register_start(name: str, make: Callable[[], Start]) -> None:
    """Give a start a name."""
    if not callable(make):
        raise TypeError(
            f"the start {name!r} should be a class derived from Start, or a function that makes one."
        )
    _starts[name] = make


def start_names() -> list[str]:
    """The names of all starts.

    >>> start_names()
    ['dct', 'dft', 'dst', 'random', 'sht']
    """
    package = __name__.rpartition(".")[0]
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    return sorted(_starts)


def find_start(start: str | Start) -> Start:
    """The start of that name; a start itself is returned as it is.

    >>> find_start("dct").first(16, 16, 4)[0].shape
    torch.Size([1, 16, 4, 2])
    """
    if isinstance(start, Start):
        return start
    names = start_names()
    if start not in names:
        raise ValueError(f"transforms start at one of {', '.join(names)}; got {start!r}.")
    return _starts[start]()
