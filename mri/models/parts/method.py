"""What every reconstruction method is: a map from sampled k-space and coil maps to an image."""

from abc import ABC, abstractmethod
from copy import deepcopy
from math import log2, prod
from typing import Any, NamedTuple, Self, cast

import torch
from torch import Tensor, nn

from data.scans.sense import Sense
from data.scans.sense_pairs import Measurement, PairSense
from lab.errors import UserError
from monarch_core import LinearOperator

Candidate = float | tuple[float, int]
"""The one number of a method, or that and a number of iterations."""


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
    needs_density: bool = False
    """Whether it does nothing without the density of the sampling, which comes with a training."""
    on_cpu: bool = False
    """Whether it only runs on the CPU."""
    decays_to_start: bool = False
    """Whether weight decay pulls it towards the weights it starts from, rather than to zero."""
    candidates: tuple[Candidate, ...] = ()
    """Values of what is chosen on the training scans before anything is learned; mostly none."""
    chosen_per_echo: bool = False
    """Whether each echo has a choice of its own."""
    joins_echoes: bool = False
    """Whether what it finds in one echo of a slice helps the others: batches then hold all echoes of a slice, one after
    the other."""
    not_in_pairs_because: str | None = "it is written for complex tensors alone"
    """Why it has no form in real arithmetic; None where `forward` takes pairs, too."""
    density: Tensor

    def __init__(self, plane: tuple[int, int], density: Tensor | None = None) -> None:
        super().__init__()
        self.plane: tuple[int, int] = (plane[0], plane[1])
        sampled = torch.ones(self.plane) if density is None else density.float()
        self.register_buffer("density", sampled, persistent=False)
        self.pairs: PairSense | None = None

    @abstractmethod
    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        """Images (batch, ky, kz) from k-space (batch, coils, ky, kz), zero where it was not sampled.

        maps as k-space; mask (batch, ky, kz), bool; echo (batch,), from 0. Made by `in_pairs`, it takes k-space and
        maps with (re, im) on a last axis of 2, and gives images likewise.
        """

    @abstractmethod
    def flops(self, coils: int) -> int:
        """Real operations for one slice."""

    def choose(self, candidate: Candidate, echo: int | None = None) -> None:
        """Take one of the candidates, for one echo (from 0) or for all."""
        raise NotImplementedError

    def described(self, candidate: Candidate) -> dict[str, float]:
        """A candidate in words, {name: number}."""
        return {"strength": float(candidate)}  # type: ignore[arg-type]

    def set_strength(self, strength: float) -> None:
        """Take a strength that a person chose, for all echoes."""
        raise UserError("--strength does nothing with this method, which has none; leave it out.")

    def rates(self) -> list[Rate]:
        """Which parameters learn how quickly; all alike unless overridden."""
        return [Rate(1.0, list(self.parameters()))]

    def measurement(self, maps: Tensor, mask: Tensor | None = None) -> Sense | Measurement:
        """What coils with these maps measure of an image, in complex numbers or, where the maps are pairs, in pairs."""
        if self.pairs is None:
            return Sense(maps, mask)
        made: Measurement = self.pairs(maps, mask)
        return made

    def in_pairs(self) -> Self:
        """A copy that computes the same in real arithmetic, with complex numbers as pairs."""
        if self.not_in_pairs_because is not None:
            raise UserError(
                f"{type(self).__name__} cannot be exported: {self.not_in_pairs_because}; "
                "use python -m mri.reconstruct."
            )
        made = deepcopy(self).eval().requires_grad_(False)
        made.pairs = PairSense(self.plane)
        return made

    @property
    def learned_transform(self) -> LearnedTransform | None:
        """What figures show of a method that learns the map from a coil's k-space to its image; None for others."""
        return None

    @property
    def num_parameters(self) -> int:
        """Real numbers that gradients train."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)


class Tunable(Method):
    """A method with a strength for each echo, which is stored with its weights.

    Numbers that are chosen are buffers (echoes,); echoes beyond the last have its number.
    """

    chosen_per_echo = True
    strength: Tensor

    def __init__(self, plane: tuple[int, int], density: Tensor | None, strength: float) -> None:
        super().__init__(plane, density)
        self.register_buffer("strength", torch.tensor([strength], dtype=torch.float64))

    def choose(self, candidate: Candidate, echo: int | None = None) -> None:
        self.store("strength", cast(float, candidate), echo)

    def set_strength(self, strength: float) -> None:
        self.store("strength", strength, None)

    def store(self, name: str, value: float, echo: int | None) -> None:
        """Write a number that was chosen for one echo, or for all."""
        kept: Tensor = getattr(self, name)
        if echo is None:
            kept = kept[:1].fill_(value)
        else:
            kept = torch.cat([kept, kept[-1:].expand(max(0, echo + 1 - len(kept)))])
            kept[echo] = value
        setattr(self, name, kept)

    def of_echo(self, name: str, echo: Tensor) -> Tensor:
        """The number chosen for the echo of each slice, (batch, 1, 1)."""
        kept: Tensor = getattr(self, name)
        return kept[echo.clamp_max(len(kept) - 1)][:, None, None]

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *others: Any) -> None:
        """Take as many echoes as a file has; an older one has a single number for all."""
        for name, kept in self.named_buffers(recurse=False):
            stored = state_dict.get(prefix + name)
            if name != "density" and stored is not None and stored.ndim <= 1:
                state_dict[prefix + name] = stored = stored.reshape(-1)
                setattr(self, name, kept.new_zeros(len(stored)))
        super()._load_from_state_dict(state_dict, prefix, *others)


def echoes_per_slice(echo: Tensor) -> int:
    """How many echoes of each slice a batch holds, one after the other; `echo` (batch,) are their numbers.

    >>> echoes_per_slice(torch.tensor([0, 1, 0, 1])), echoes_per_slice(torch.tensor([1, 1]))
    (2, 1)
    """
    numbers = echo.unique()
    count = len(numbers)
    if len(echo) % count or not (echo.view(-1, count) == numbers).all():
        raise ValueError(
            f"echoes that are reconstructed together stand one after the other, slice by slice; got {echo.tolist()}."
        )
    return count


def sense_flops(plane: tuple[int, int], coils: int) -> int:
    """Real operations of zero-filled SENSE: for each coil an FFT, 5 n log2 n by convention, and n multiply-adds."""
    points = prod(plane)
    return coils * (round(5 * points * log2(points)) + 8 * points)
