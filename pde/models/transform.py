"""Truncated transforms as small matrices: fixed, or learnable from a start such as the DFT.

A neural operator keeps few frequencies (12 of 64 points), so an axis's transform is a small matrix and its product
with a field one matrix multiplication: on a CPU that is faster than an FFT followed by throwing most of it away.

    plane, forward    z[k]    = sum_t x[t] A_y[t, k]       real field, k = 0 ... m-1      (R: mixes within a row)
                      f[l, k] = sum_s z[s, k] A_x[s, l]    l = 0 ... m-1, -m ... -1       (L: mixes within a column)
    plane, back       g[s, k] = sum_l f[l, k] S_x[l, s]
                      y[s, t] = Re sum_k g[s, k] S_y[k, t]

Rows, then columns, a block for each: on the h x w grid both directions are Monarch matrices M = P L P^T R. Here the
blocks of R are one and the same matrix, as are those of L (`pde.models.grid` has the form in which every row and
every kept column has its own). All start orthonormal, so that forward and back learn at the same pace.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from monarch_core import dct, dft, dst

Start = Literal["dft", "dct", "dst", "sht", "random"]
"""Where transforms begin. "sht", the spherical harmonic one, has a matrix per order: the grid form alone has it."""


def frequencies(modes: int, signed: bool) -> list[int]:
    """0 ... modes-1, then with `signed` also -modes ... -1: the corners that an FNO keeps."""
    return [*range(modes), *(range(-modes, 0) if signed else ())]


def start_matrix(start: Start, n: int, modes: int, signed: bool) -> Tensor:
    """The n x (kept frequencies) complex matrix of an orthonormal transform: row t, column k.

    Cosines and sines are real: with `signed` it keeps the lowest 2 `modes` of them, otherwise two neighbours become
    one complex number, z[k] = sum_t x[t] (c[2k](t) + i c[2k+1](t)), so that a plane of 2m x m complex modes holds the
    2m x 2m lowest ones, as fine a resolution as that of the DFT.

    >>> A = start_matrix("dft", 64, 12, signed=False)
    >>> torch.allclose(torch.ones(64, dtype=torch.complex128) @ A, 8.0 * torch.eye(12, dtype=torch.complex128)[0])
    True
    """
    kept = frequencies(modes, signed)
    if start == "sht":
        raise ValueError("the spherical harmonic transform is not one of each axis; it needs the grid form.")
    if start == "random":
        return torch.randn(n, len(kept), dtype=torch.complex128) * n**-0.5
    if start == "dft":
        return dft(n, norm="ortho", dtype=torch.complex128).to_dense().detach().T[:, kept]
    transform = {"dct": dct, "dst": dst}[start](n, norm="ortho", dtype=torch.float64)
    return packed(transform.to_dense().detach().T, modes, signed)


def packed(waves: Tensor, modes: int, signed: bool) -> Tensor:
    """The lowest 2 `modes` of the real columns as complex ones: each by itself, or two neighbours as re and im."""
    lowest = waves[..., : 2 * modes]
    if signed:
        return torch.complex(lowest, torch.zeros_like(lowest))
    return torch.complex(lowest[..., 0::2], lowest[..., 1::2])


class Axis(nn.Module):
    """The transform of one axis and the way back, for each group of channels.

    With `out` the way back leads to another number of points: a field that the kept frequencies hold is resampled.
    `forward` and `back` are kept as real arrays with a trailing axis of 2, in the layout in which they multiply.
    `learn` adds trainable deviations from the start, zero at first: their weight decay pulls towards the start.
    """

    forward_start: Tensor
    back_start: Tensor

    def __init__(
        self,
        n: int,
        modes: int,
        *,
        signed: bool,
        start: Start = "dft",
        learn: bool = False,
        groups: int = 1,
        out: int | None = None,
    ) -> None:
        super().__init__()
        self.n, self.out = n, n if out is None else out
        if 2 * modes > min(self.n, self.out):
            raise ValueError(
                f"{modes} modes need at least {2 * modes} points per side; there are {min(self.n, self.out)}."
            )
        self.modes, self.signed, self.start, self.groups = modes, signed, start, groups
        there = start_matrix(start, n, modes, signed)
        back = (there if self.out == n else start_matrix(start, self.out, modes, signed)).conj().T
        back = back * self.stretch
        if not signed and start == "dft":
            # A real field has equal energy at k and -k, of which only k is kept.
            back = back * torch.tensor([1.0] + [2.0] * (modes - 1), dtype=torch.float64)[:, None]
        self._register("forward", stored(there), learn)
        self._register("back", stored(back), learn)

    @property
    def stretch(self) -> float:
        """What keeps the height of a field whose orthonormal transform and the way back differ in their points."""
        stretch: float = (self.out / self.n) ** 0.5
        return stretch

    def _register(self, name: str, start: Tensor, learn: bool) -> None:
        self.register_buffer(f"{name}_start", start, persistent=self.start == "random")
        if learn:
            change = torch.zeros(self.groups, *start.shape)
            self.register_parameter(f"{name}_change", nn.Parameter(change))

    def matrices(self) -> tuple[Tensor, Tensor]:
        """Forward (groups, n, kept, 2) and back (groups, kept, out, 2)."""
        return self._matrix("forward"), self._matrix("back")

    def _matrix(self, name: str) -> Tensor:
        start, change = getattr(self, f"{name}_start"), getattr(self, f"{name}_change", None)
        return start.expand(self.groups, *start.shape) if change is None else start + change

    def resampled(self, n: int, out: int | None = None) -> "Axis":
        """The same transform for n points, `out` on the way back: its basis functions, interpolated by their series."""
        learned = any(True for _ in self.parameters())
        new = Axis(n, self.modes, signed=self.signed, start="dft", learn=learned, groups=self.groups, out=out)
        if learned:
            scale = (self.n / n) ** 0.5
            sides = (("forward", 1, n), ("back", 2, new.out))
            for (name, axis, points), matrix in zip(sides, self.matrices(), strict=True):
                basis = torch.view_as_complex(matrix.detach().contiguous())
                wanted = _interpolated(basis, points, axis) * scale
                change = torch.view_as_real(wanted) - getattr(new, f"{name}_start")
                getattr(new, f"{name}_change").data = change
        return new


def stored(matrix: Tensor) -> Tensor:
    """A complex matrix as a real one of torch's default dtype, with a trailing axis of 2."""
    return torch.view_as_real(matrix.resolve_conj().contiguous()).to(torch.get_default_dtype()).clone()


def _interpolated(basis: Tensor, n: int, axis: int) -> Tensor:
    """Complex functions sampled along `axis`, sampled at n points instead."""
    there = basis.shape[axis]
    series = torch.fft.fftshift(torch.fft.fft(basis, dim=axis, norm="forward"), dim=axis)
    zero, before = there // 2, n // 2
    series = series.movedim(axis, -1)
    series = torch.nn.functional.pad(series, (before - zero, (n - before) - (there - zero)))
    series = torch.fft.ifftshift(series, dim=-1).movedim(-1, axis)
    return torch.fft.ifft(series, dim=axis, norm="forward")
