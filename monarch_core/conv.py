"""Long convolutions by matrix products alone: the DFT of any length as two small products and a twiddle, no FFT.

With N = J K, t = K i + k and f = l J + j, the DFT of x is

    z[j, l] = sum_k exp(-2 pi i l k / K) exp(-2 pi i j k / N) sum_i exp(-2 pi i j i / J) x[i, k],

a Monarch matrix whose blocks are equal but for the twiddle. The convolution theorem needs no particular length: N is
any product at least as large as signal and kernel together. Everything is real arithmetic (pairs of real and imaginary
parts), so that it runs where complex tensors do not: half precision, ONNX, Apple's GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt, prod, sqrt
from typing import Literal

import torch
from torch import Tensor, arange, nn
from torch.nn.functional import pad as zero_pad

from .checks import pair, tensor, whole
from .linear_operator import checked_dtype
from .multiply import check_types, is_traced
from .transforms.fourier_factors import root_of_unity

Pair = tuple[Tensor, Tensor]
Mode = Literal["causal", "same", "circular"]


class MonarchConv1d(nn.Module):
    """y[t] = sum_s kernel[s] x[t - s], one kernel per channel, for signals (..., channels, length).

    Arguments:
        channels: number of channels; each is convolved with its own kernel.
        length: length of the signals; shorter ones are accepted.
        kernel_size: length of the kernels; `length` by default.
        mode: "causal" (y[t] sees x[0] ... x[t]), "same" (numpy.convolve's, for odd kernels centred) or "circular".
        bias: whether to add a number per channel.

    It is a convolution as signal processing defines it, the one that torch.fft gives; nn.Conv1d flips the kernel.

    >>> layer = MonarchConv1d(3, length=1000)
    >>> layer(torch.ones(2, 3, 1000)).shape
    torch.Size([2, 3, 1000])
    """

    def __init__(
        self,
        channels: int,
        length: int,
        kernel_size: int | None = None,
        *,
        mode: Mode = "causal",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = (length,) if kernel_size is None else (kernel_size,)
        self._set_up(channels, (length,), sizes, mode, bias, device, dtype)

    def _set_up(
        self,
        channels: int,
        lengths: tuple[int, ...],
        kernel_sizes: tuple[int, ...],
        mode: Mode,
        bias: bool,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        if mode not in ("causal", "same", "circular"):
            raise ValueError(f'mode is "causal", "same" or "circular"; got {mode!r}.')
        for n, m in zip(lengths, kernel_sizes, strict=True):
            whole(n, "a length", least=1), whole(m, "a kernel size", least=1)
            if mode == "circular" and m > n:
                raise ValueError(
                    "the kernel of a circular convolution is no longer than the signal; "
                    f"got length {n} and kernel_size {m}."
                )
        if checked_dtype(dtype, False, type(self).__name__).is_complex:
            raise TypeError(f"{type(self).__name__} is real; got dtype={dtype}.")
        channels = whole(channels, "the number of channels", least=1)
        self.lengths, self.kernel_sizes, self.mode = lengths, kernel_sizes, mode
        self.kernel = nn.Parameter(torch.empty(channels, *kernel_sizes, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(channels, device=device, dtype=dtype)) if bias else None
        # The last axis meets a real signal, whose spectrum is known from one half.
        self.axes = nn.ModuleList(
            SpectralAxis(n + m - 1, real_signal=at == len(lengths) - 1).to(
                device=device, dtype=self.kernel.dtype
            )
            for at, (n, m) in enumerate(zip(lengths, kernel_sizes, strict=True))
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As a depthwise nn.Conv1d: uniform within one over the square root of the kernel's size."""
        bound = 1 / sqrt(prod(self.kernel_sizes))
        nn.init.uniform_(self.kernel, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """The convolution of x (..., channels, length) with the kernels, and the bias."""
        y = self.convolve(x, self.kernel)
        return y if self.bias is None else y + self.bias.reshape(-1, *[1] * len(self.lengths))

    def convolve(self, x: Tensor, kernel: Tensor) -> Tensor:
        """The convolution with a kernel (channels, kernel_size) computed elsewhere."""
        if not is_traced():
            self._check(tensor(x, "a signal"), tensor(kernel, "a kernel"))
        sizes = x.shape[-len(self.lengths) :]
        product = _times(self._spectrum(x), self._spectrum(kernel))
        full = self._signal(product)
        for axis, (n, m) in enumerate(zip(sizes, self.kernel_sizes, strict=True), start=-len(sizes)):
            if self.mode == "circular":
                wrapped = full.narrow(axis, n, m - 1)
                missing = [0, 0] * (-axis - 1) + [0, n - m + 1]
                full = full.narrow(axis, 0, n) + zero_pad(wrapped, missing)
            else:
                full = full.narrow(axis, (m - 1) // 2 if self.mode == "same" else 0, n)
        return full

    def _check(self, x: Tensor, kernel: Tensor) -> None:
        if kernel.shape != self.kernel.shape:
            raise ValueError(
                f"a kernel for this layer has shape {tuple(self.kernel.shape)}; got {tuple(kernel.shape)}."
            )
        check_types(x, kernel)
        sizes = x.shape[-len(self.lengths) :]
        if (
            x.dim() <= len(self.lengths)
            or x.shape[-len(sizes) - 1] != len(self.kernel)
            or any(n > most for n, most in zip(sizes, self.lengths, strict=True))
        ):
            raise ValueError(
                f"{type(self).__name__} takes ({len(self.kernel)} channels, {', '.join(map(str, self.lengths))}) "
                f"or shorter signals; got shape {tuple(x.shape)}."
            )
        if self.mode == "circular" and tuple(sizes) != self.lengths:
            raise ValueError(
                f"a circular convolution wraps at {self.lengths}; got a signal of {tuple(sizes)}."
            )

    def _spectrum(self, x: Tensor) -> Pair:
        """From the last axis to the first; each transform puts its frequencies in place of its positions."""
        pair: Pair = (x, torch.empty(0))
        for at in reversed(range(len(self.axes))):
            pair = self._axis(at).forward(pair, at - len(self.axes))
        return pair

    def _signal(self, pair: Pair) -> Tensor:
        for at in range(len(self.axes)):
            pair = self._axis(at).backward(pair, at - len(self.axes))
        return pair[0]

    def _axis(self, at: int) -> SpectralAxis:
        axis = self.axes[at]
        assert isinstance(axis, SpectralAxis)
        return axis

    def extra_repr(self) -> str:
        sizes = f"channels={len(self.kernel)}, length={self.lengths}, kernel_size={self.kernel_sizes}"
        return f"{sizes}, mode={self.mode!r}, bias={self.bias is not None}"


class MonarchConv2d(MonarchConv1d):
    """The convolution of images (..., channels, height, width) with one large kernel per channel.

    Arguments:
        channels: number of channels; each is convolved with its own kernel.
        size: (height, width) of the images, or one number for both; smaller ones are accepted.
        kernel_size: (height, width) of the kernels, or one number; `size` by default.
        mode: "same", "causal" (from the upper left corner) or "circular".
        bias: whether to add a number per channel.

    >>> MonarchConv2d(3, (20, 31), (7, 9))(torch.ones(2, 3, 20, 31)).shape
    torch.Size([2, 3, 20, 31])
    """

    def __init__(
        self,
        channels: int,
        size: int | tuple[int, int],
        kernel_size: int | tuple[int, int] | None = None,
        *,
        mode: Mode = "same",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.Module.__init__(self)
        sizes = _sides(size, "the size of the images")
        kernel = sizes if kernel_size is None else _sides(kernel_size, "kernel_size")
        self._set_up(channels, sizes, kernel, mode, bias, device, dtype)


class SpectralAxis(nn.Module):
    """The DFT along one axis for periods of at least `least`, in real arithmetic, and its inverse.

    With `real_signal` only j = 0 ... J // 2 is computed, and the inverse counts the others twice.
    """

    first: Tensor
    twiddle: Tensor
    second: Tensor
    weight: Tensor

    def __init__(self, least: int, real_signal: bool) -> None:
        super().__init__()
        K = isqrt(max(least - 1, 0)) + 1
        J = -(-least // K)
        kept = J // 2 + 1 if real_signal else J
        self.J, self.K, self.kept, self.real_signal = J, K, kept, real_signal
        for name, table in self._computed().items():
            self.register_buffer(name, table, persistent=False)

    def _computed(self) -> dict[str, Tensor]:
        """The tables, in double precision."""
        J, K = self.J, self.K
        j, i, k = (arange(n, device="cpu") for n in (self.kept, J, K))
        paired = self.real_signal & (j > 0) & (2 * j != J)
        roots = {
            "first": root_of_unity(j[:, None] * i, J),
            "twiddle": root_of_unity(j[:, None] * k, J * K),
            "second": root_of_unity(k[:, None] * k, K),
        }
        tables = {name: torch.view_as_real(root).movedim(-1, 0).contiguous() for name, root in roots.items()}
        return {**tables, "weight": torch.where(paired, 2.0, 1.0).double()[:, None] / (J * K)}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> SpectralAxis:
        """Move or cast the tables: from their exact values, not from what a narrower type or no device left of them."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, table in self._computed().items():
            here = getattr(self, name)
            setattr(self, name, table.to(here.device, here.dtype))
        return self

    def forward(self, x: Pair, axis: int) -> Pair:
        """The spectrum, its J x K grid of frequencies in place of the axis, flattened."""
        real, *imaginary = (self._grid(part, axis, self.J) for part in (x[:1] if self.real_signal else x))
        first, twiddle, second = self._tables(real.device)
        rows = (first[0] @ real, first[1] @ real)
        if imaginary:
            rows = (rows[0] - first[1] @ imaginary[0], rows[1] + first[0] @ imaginary[0])
        return self._line(_times_matrix(_times(rows, twiddle), second), axis)

    def backward(self, z: Pair, axis: int) -> Pair:
        """The signal of length J K whose spectrum is z; only its real part if the signal is real."""
        first, twiddle, second = (_conjugate(table) for table in self._tables(z[0].device))
        weight = self.weight.to(z[0].device)
        re, im = (weight * self._grid(part, axis, self.kept) for part in z)
        re, im = _times(_times_matrix((re, im), second), twiddle)
        real = first[0].mT @ re - first[1].mT @ im
        if self.real_signal:
            return self._line((real, real), axis)
        return self._line((real, first[0].mT @ im + first[1].mT @ re), axis)

    def _tables(self, device: torch.device) -> tuple[Pair, Pair, Pair]:
        # A layer that was made on the meta device has its tables on the CPU, since nothing would fill them later.
        tables = (t.to(device) for t in (self.first, self.twiddle, self.second))
        first, twiddle, second = ((t[0], t[1]) for t in tables)
        return first, twiddle, second

    def _grid(self, x: Tensor, axis: int, rows: int) -> Tensor:
        x = x.movedim(axis, -1)
        return zero_pad(x, (0, rows * self.K - x.shape[-1])).reshape(*x.shape[:-1], rows, self.K)

    @staticmethod
    def _line(pair: Pair, axis: int) -> Pair:
        re, im = (part.flatten(-2).movedim(-1, axis) for part in pair)
        return re, im


def _sides(value: int | tuple[int, int], what: str) -> tuple[int, int]:
    return pair((value, value) if isinstance(value, int) else value, what)


def _times(a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _times_matrix(a: Pair, b: Pair) -> Pair:
    return a[0] @ b[0] - a[1] @ b[1], a[0] @ b[1] + a[1] @ b[0]


def _conjugate(a: Pair) -> Pair:
    return a[0], -a[1]
