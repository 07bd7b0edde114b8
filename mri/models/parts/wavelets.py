"""Daubechies-4 wavelets of images, as sigpy and BART use them."""

from functools import lru_cache
from math import floor, log2, prod

import torch
from torch import Tensor

from monarch_core import LinearOperator

LOW = (
    -0.010597401785069032, 0.0328830116668852, 0.030841381835560764, -0.18703481171909309,
    -0.027983769416859854, 0.6308807679298589, 0.7148465705529157, 0.2303778133088965,
)  # fmt: skip
"""The analysis low-pass filter with four vanishing moments, the published numbers."""


class Wavelets(LinearOperator):
    """W x: all wavelet coefficients of real images (ky, kz), one after the other; W^T W is the identity.

    The image is taken as zero outside, and no coefficient is left out, so there are somewhat more of them than points.
    On each level one matrix filters the rows of what is left of the image and another its columns:
    [low, high] (rows) x [low, high] (columns)^T. Three quarters of that are coefficients; the rest, low-pass along both
    axes, is the image of the next level, as long as the shorter side is at least as long as the filter allows.

    >>> W = Wavelets((32, 21))
    >>> x = torch.randn(3, 32, 21)
    >>> torch.allclose(W.adjoint(W(x)), x, atol=1e-5)
    True
    """

    def __init__(
        self,
        plane: tuple[int, int],
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        depth = max(0, floor(log2(min(n + n % 2 for n in plane) / (len(LOW) - 1))))
        self.levels: list[tuple[Tensor, Tensor]] = []
        self.lows = [plane]
        for level in range(depth):
            # An odd side is made even by a zero in front.
            odd = [n % 2 if level == 0 else 0 for n in self.lows[-1]]
            rows, columns = (
                _analysis(n + extra, dtype, device)[:, extra:]
                for n, extra in zip(self.lows[-1], odd, strict=True)
            )
            self.levels.append((rows, columns))
            self.lows.append((len(rows) // 2, len(columns) // 2))
        self.in_shape = plane
        self.out_shape = (sum(self._sizes()),)
        self._dtype = dtype

    def _sizes(self) -> list[int]:
        """How many coefficients each part of the output has: two parts for each level, then the last low-pass image."""
        found = []
        for (rows, columns), (low, lower) in zip(self.levels, self.lows[1:], strict=True):
            found += [(len(rows) - low) * len(columns), low * (len(columns) - lower)]
        return [*found, prod(self.lows[-1])]

    def multiply(self, x: Tensor) -> Tensor:
        parts = []
        for (rows, columns), (low, lower) in zip(self.levels, self.lows[1:], strict=True):
            y = rows @ x @ columns.mT
            parts += [y[..., low:, :].flatten(-2), y[..., :low, lower:].flatten(-2)]
            x = y[..., :low, :lower]
        return torch.cat([*parts, x.flatten(-2)], -1)

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        *parts, last = y.split(self._sizes(), -1)
        x = last.unflatten(-1, self.lows[-1])
        for (rows, columns), (low, lower) in zip(reversed(self.levels), reversed(self.lows[1:]), strict=True):
            right = parts.pop().unflatten(-1, (low, len(columns) - lower))
            below = parts.pop().unflatten(-1, (len(rows) - low, len(columns)))
            x = rows.mT @ torch.cat([torch.cat([x, right], -1), below], -2) @ columns
        return x

    @property
    def dtype(self) -> torch.dtype:
        return self._dtype

    def flops(self, batch: int = 1) -> int:
        """As filters, two multiply-adds for each of eight taps and each output."""
        outputs = sum(len(rows) * sum(columns.shape) for rows, columns in self.levels)
        return batch * 2 * len(LOW) * outputs


@lru_cache
def _analysis(n: int, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """The low-pass and below it the high-pass filter, every second output each, as one matrix on n points.

    Dense: at the sides of images one matrix product is quicker than strided filters and their transposes.
    """
    taps = len(LOW)
    low = torch.tensor(LOW, dtype=torch.float64)
    high = low.flip(0) * (-1.0) ** torch.arange(1, taps + 1)
    half = (n + taps - 1) // 2
    delay = 2 * torch.arange(half)[:, None] + 1 - torch.arange(n)
    inside = (delay >= 0) & (delay < taps)
    with torch.inference_mode(False):  # it is kept, and one day serves a training step
        bands = [taken[delay.clamp(0, taps - 1)] * inside for taken in (low, high)]
        return torch.cat(bands).to(device, dtype)
