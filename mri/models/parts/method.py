"""What every reconstruction method is: a map from sampled k-space and coil maps to an image."""

from abc import ABC, abstractmethod
from math import log2, prod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from monarch_core import LinearOperator


class LearnedTransform(NamedTuple):
    """A linear map from k-space (ky, kz) to an image, and the weight |M e_k| that it gives each frequency k."""

    operator: LinearOperator
    weights: Tensor


class Rate(NamedTuple):
    """Parameters that learn together: their learning rate is `factor` times the experiment's."""

    factor: float
    parameters: list[nn.Parameter]


class Method(nn.Module, ABC):
    """A reconstruction of slices of one size (ky, kz).

    Every method is made from that size, from the density (ky, kz) with which its data are sampled (the mean of many
    masks; everywhere 1 when not given) and from the options of its entry.
    """

    any_plane: bool = False
    """Whether it takes slices of other sizes too."""
    on_cpu: bool = False
    """Whether it only runs on the CPU."""
    decays_to_start: bool = False
    """Whether weight decay pulls it towards the weights it starts from, rather than to zero."""
    candidates: tuple[float, ...] = ()
    """Values of the one number that is chosen on the training scans before anything is learned; mostly none."""
    density: Tensor

    def __init__(self, plane: tuple[int, int], density: Tensor | None = None) -> None:
        super().__init__()
        self.plane: tuple[int, int] = (plane[0], plane[1])
        sampled = torch.ones(self.plane) if density is None else density.float()
        self.register_buffer("density", sampled, persistent=False)

    @abstractmethod
    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        """Images (batch, ky, kz) from k-space (batch, coils, ky, kz), zero where it was not sampled.

        maps as k-space; mask (batch, ky, kz), bool; echo (batch,), from 0.
        """

    @abstractmethod
    def flops(self, coils: int) -> int:
        """Real operations for one slice."""

    def choose(self, candidate: float) -> None:
        """Take one of the candidates."""
        raise NotImplementedError

    def rates(self) -> list[Rate]:
        """Which parameters learn how quickly; all alike unless overridden."""
        return [Rate(1.0, list(self.parameters()))]

    @property
    def learned_transform(self) -> LearnedTransform | None:
        """What figures show of a method that learns the map from a coil's k-space to its image; None for others."""
        return None

    @property
    def num_parameters(self) -> int:
        """Real numbers that gradients train."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)


class Tunable(Method):
    """A method with a strength, a single number that is stored with its weights."""

    strength: Tensor

    def __init__(self, plane: tuple[int, int], density: Tensor | None, strength: float) -> None:
        super().__init__(plane, density)
        self.register_buffer("strength", torch.tensor(strength, dtype=torch.float64))

    def choose(self, candidate: float) -> None:
        self.strength.fill_(candidate)


def sense_flops(plane: tuple[int, int], coils: int) -> int:
    """Real operations of zero-filled SENSE: for each coil an FFT, 5 n log2 n by convention, and n multiply-adds."""
    points = prod(plane)
    return coils * (round(5 * points * log2(points)) + 8 * points)
