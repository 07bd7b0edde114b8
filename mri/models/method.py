"""What every reconstruction method is: a map from sampled k-space and coil maps to an image."""

from abc import ABC, abstractmethod
from math import log2, prod

import torch
from torch import Tensor, nn


class Method(nn.Module, ABC):
    """A reconstruction of slices of one size (ky, kz)."""

    def __init__(self, plane: tuple[int, int]) -> None:
        super().__init__()
        self.plane: tuple[int, int] = (plane[0], plane[1])

    @abstractmethod
    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        """Images (batch, ky, kz) from k-space (batch, coils, ky, kz), zero where it was not sampled.

        maps as k-space; mask (batch, ky, kz), bool; echo (batch,), from 0.
        """

    @abstractmethod
    def flops(self, coils: int) -> int:
        """Real operations for one slice."""

    @property
    def num_parameters(self) -> int:
        """Real numbers that gradients train."""
        return sum(parameter.numel() for parameter in self.parameters())


class Tunable(Method):
    """A method with one number to choose, which is chosen on the training scans."""

    strength: Tensor
    candidates: tuple[float, ...]

    def __init__(self, plane: tuple[int, int], strength: float) -> None:
        super().__init__(plane)
        self.register_buffer("strength", torch.tensor(strength, dtype=torch.float64))


def fft_flops(plane: tuple[int, ...]) -> int:
    """Real operations of a 2-D FFT, 5 n log2 n by convention."""
    points = prod(plane)
    return round(5 * points * log2(points))


def sense_flops(plane: tuple[int, ...], coils: int) -> int:
    """Real operations of zero-filled SENSE: a transform and a complex multiply-add for each coil."""
    return coils * (fft_flops(plane) + 8 * prod(plane))
