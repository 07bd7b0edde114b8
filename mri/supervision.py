"""Training without ground truth: some of the samples are held back, and the reconstruction has to predict them."""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor

from data.masks.pool import stable_seed
from data.scans.sense import Sense, sample
from data.scans.slices import Slice
from mri.augment import flipped, noisier, shifted, turned
from mri.config import TrainConfig
from mri.experiment import Reconstruction
from mri.losses import FLOOR, misfit
from mri.models.parts.method import Method

HELD_BACK = (0.2, 0.8)
"""Share of the outermost samples that the loss is computed on, drawn anew between these for every slice and step."""
RESERVED = 0.3
"""The same share for validation, where the samples held back are those of every epoch."""
RAREST = 0.02
"""Densities below this count as this, so that no single sample decides."""


class SelfSupervised(Reconstruction):
    """SSDU (Yaman et al. 2020): the samples are split in two, one part is reconstructed, the other predicted.

    With p the density of the sampling, a sample is held back with a probability proportional to 1 - p, and counts
    1 / p: what is held back then stands for what was not sampled, and the centre, which every mask has, is always
    given. The loss is the logarithm of the misfit, so that slices count alike; not squared, because
    maps that are not exact leave large errors near the centre that no image removes.

    Each scan was sampled once, with a mask of its own; nothing outside it, and no target, is looked at, in training or
    in validation. Samples that validation predicts are never trained on, even if training and validation see the
    same scan, as with --supervision zero-shot: they are then the third set, which tells when to stop.
    """

    unit = "of the samples held back"

    def __init__(
        self,
        model: Method,
        config: TrainConfig,
        masks: Mapping[str, Tensor],
        reserved: Mapping[str, Tensor],
    ) -> None:
        """`masks` and `reserved`, bool (ky, kz), by scan: what was sampled, and what of it is for validation."""
        super().__init__(model, config, torch.empty(0), dict(masks))
        self.reserved = dict(reserved)

    def loss(self, batch: Slice) -> Tensor:
        mask, reserved = self._masks(batch)
        mask = mask & ~reserved
        kspace, maps, unused = acquired(batch, mask)
        if self.config.shift:
            kspace, maps, unused = shifted(kspace, maps, unused, self.config.shift)
        if self.config.turn:
            kspace, unused = turned(kspace, unused)
        if self.config.flip:
            kspace, maps, mask = flipped(kspace, maps, mask)
        given, held = split(mask, self.model.density, HELD_BACK)
        samples = sample(kspace, given)
        if self.config.noise:
            samples = sample(noisier(samples, given, self.config.noise), given)
        image = self.model(samples, maps, given, batch.echo)
        return (misfit(image, kspace, maps, self._weights(held)) + FLOOR).log().mean()

    def scores(self, batch: Slice) -> dict[str, Tensor]:
        mask, reserved = self._masks(batch)
        kspace, maps, _ = acquired(batch, mask)
        given = mask & ~reserved
        image = self.model(sample(kspace, given), maps, given, batch.echo)
        return {"error": misfit(image, kspace, maps, self._weights(reserved))}

    def _weights(self, held: Tensor) -> Tensor:
        return held / self.model.density.clamp_min(RAREST)

    def _masks(self, batch: Slice) -> tuple[Tensor, Tensor]:
        names = cast(list[str], batch.scan_id)  # the fields of a batch are those of a slice, stacked
        mask = torch.stack([self.validation_masks[name] for name in names])
        nothing = torch.zeros_like(mask[0])
        reserved = torch.stack([self.reserved.get(name, nothing) for name in names])
        return mask.to(batch.kspace.device), reserved.to(batch.kspace.device)


def acquired(batch: Slice, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """K-space where the mask is true, zero elsewhere whatever stands there, in units of its zero-filled image; the
    maps; that image."""
    kspace = torch.where(mask[:, None], batch.kspace, 0)
    zero_filled = Sense(batch.maps).adjoint(kspace)
    size = zero_filled.abs().square().mean((-2, -1), keepdim=True).sqrt().clamp_min(1e-30)
    return kspace / size[:, None], batch.maps, zero_filled / size


def split(
    mask: Tensor, density: Tensor, share: tuple[float, float], generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Masks (batch, ky, kz) in two: what is given, and what is held back.

    A sample is held back with probability s (1 - density), with s between the two numbers, one for each mask.

    >>> mask, density = torch.rand(3, 20, 16) < 0.5, torch.full((20, 16), 0.5)
    >>> given, held = split(mask, density, (0.2, 0.8))
    >>> bool(((given ^ held) == mask).all())
    True
    """
    shares = torch.empty(len(mask), 1, 1).uniform_(*share, generator=generator).to(density.device)
    chance = torch.rand(mask.shape, generator=generator).to(density.device)
    held = mask & (chance < shares * (1 - density))
    return mask & ~held, held


def reserve(masks: Mapping[str, Tensor], density: Tensor) -> dict[str, Tensor]:
    """For each scan the samples that validation predicts: a part of its mask that depends on the scan's name alone."""
    found = {}
    for name, mask in masks.items():
        generator = torch.Generator().manual_seed(stable_seed(name, "reserved"))
        found[name] = split(mask[None], density, (RESERVED, RESERVED), generator)[1][0]
    return found
