"""Training without ground truth: some of the samples are held back, and the reconstruction has to predict them."""

from collections.abc import Collection, Mapping
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d

from data.masks.pool import stable_seed
from data.scans.sense import Sense, centre, sample
from data.scans.slices import Slice
from mri.augment import flipped, noisier, shifted, turned
from mri.config import TrainConfig
from mri.experiment import Reconstruction
from mri.losses import FLOOR, misfit
from mri.models.parts.acquired import acquired_plane, interpolated, resampled
from mri.models.parts.method import Method
from mri.sampling import measured

HELD_BACK = (0.2, 0.8)
"""Share of the outermost samples that are held back, drawn anew between these for every slice and step."""
RESERVED = 0.3
"""The same share for validation, where the samples held back are those of every epoch."""
WINDOW = 9
"""Side of the square over which densities are averaged: of some dozens of masks alone they would be rough."""
WINDOW_OF_ONE = 13
"""The same where there is a single mask: Poisson masks of 208 x 80 points at acceleration 4 come within 11 % of their
density by it, and nearer than by squares of 7 or 21."""
SOLID = 7
"""Side of the squares that a region must hold to count as always sampled, where there is a single mask."""
COARSE = 0.7
"""Share of the sides of k-space that the coarser problem of every other step has: a rectangle within the ellipse."""
SMALLEST = 12
"""Shortest side of a slice that is made coarser."""
RAREST = 0.02
"""Densities below this count as this, so that no single sample decides."""


class SelfSupervised(Reconstruction):
    """SSDU (Yaman et al. 2020): the samples are split in two, one part is reconstructed, the other predicted.

    With p the density of the sampling, a sample is held back with the probability s (1 - p): the centre, which every
    mask has, is always given. The loss is the misfit over all samples, given ones and held ones,

        sum w |A x - y|^2 / sum w |y|^2,    w = 1 if given, 1 + 1 / (s p) if held back,

    in the logarithm, so that slices count alike. Of 1 + 1 / (s p) times that a point of k-space is not given, it is
    held back once. So the expected sum is that over the whole of k-space, sampled or not; and as A^H A = 1, that is the
    squared error against full sampling, |x - A^H y|^2, and a constant, which no image explains. Without the given
    samples nothing would tie down what all masks have in common: the contrast of the image.

    Nor does any sample tell what belongs into corners of k-space that no mask samples. So every other step, on average,
    solves the same problem at a coarser resolution, where what then are the corners was sampled: see `coarser`.

    Each scan was sampled once, with a mask of its own; nothing outside it, and no target, is looked at, in training or
    in validation. Samples that validation predicts are never trained on, even if training and validation see the
    same scan, as with --supervision zero-shot: they are then the third set, which tells when to stop.
    """

    unit = "of the samples' energy"

    def __init__(
        self,
        model: Method,
        config: TrainConfig,
        masks: Mapping[str, Tensor],
        reserved: Mapping[str, Tensor],
        densities: Mapping[str, Tensor],
        validated: Collection[str] = (),
        acc: float | None = None,
    ) -> None:
        """By scan, (ky, kz): what is sampled, what of that is for validation, and the density of the sampling.

        Scans without a mask are taken as they were acquired; `validated` are those of them that validation sees. `acc`
        is the acceleration of the scans, where it is not what the options say.
        """
        super().__init__(model, config, {}, masks)
        self.acc = config.acc if acc is None else acc
        self.reserved, self.densities, self.validated = dict(reserved), dict(densities), set(validated)

    def loss(self, batch: Slice) -> Tensor:
        mask, reserved, density = self._of(batch)
        alike = self.alike(batch)  # echoes that are reconstructed together are split alike, too
        mask = mask & ~reserved
        # Where something was reserved, what is left to train on is rarer.
        rarer = density * (1 - RESERVED * (1 - density))
        density = torch.where(reserved.flatten(1).any(1)[:, None, None], rarer, density)
        kspace, maps, unused = acquired(batch, mask)
        if self.config.shift:
            kspace, maps, unused = shifted(kspace, maps, unused, self.config.shift, alike)
        if self.config.turn:
            kspace, unused = turned(kspace, unused)
        if self.config.flip:
            kspace, maps, mask, density = flipped(kspace, maps, mask, density)
        region = torch.ones_like(mask)
        if self.model.any_plane and torch.rand(()) < 0.5:
            kspace, maps, mask, density, region = coarser(kspace, maps, mask, density)
        given, weights = split(mask, density, HELD_BACK, region, alike)
        samples = sample(kspace, given)
        if self.config.noise:
            samples = sample(noisier(samples, given, self.config.noise), given)
        image = self.model(samples, maps, given, batch.echo)
        return (misfit(image, kspace, maps, weights) + FLOOR).log().mean()

    def scores(self, batch: Slice) -> dict[str, Tensor]:
        mask, reserved, density = self._of(batch)
        kspace, maps, _ = acquired(batch, mask)
        given = mask & ~reserved
        image = self.model(sample(kspace, given), maps, given, batch.echo)
        return {"error": misfit(image, kspace, maps, weighted(mask, reserved, RESERVED, density))}

    def header(self) -> dict[str, Any]:
        return {**super().header(), "acc": self.acc}

    def _of(self, batch: Slice) -> tuple[Tensor, Tensor, Tensor]:
        """Masks, reserved samples and densities of the slices of a batch, (batch, ky, kz) each."""
        names = cast(list[str], batch.scan_id)  # the fields of a batch are those of a slice, stacked
        found = [self._sampled(name, kspace) for name, kspace in zip(names, batch.kspace, strict=True)]
        mask, reserved, density = (torch.stack(several) for several in zip(*found, strict=True))
        return mask, reserved & mask, density

    def _sampled(self, name: str, kspace: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same of one slice of a scan, with k-space (coils, ky, kz)."""
        mask = measured(kspace)
        nothing = torch.zeros_like(mask)
        if name in self.validation_masks:
            mine = self.validation_masks[name], self.reserved.get(name, nothing), self.densities[name]
            simulated, reserved, density = (each.to(mask.device) for each in mine)
            return simulated & mask, reserved, density
        # Slices and echoes of a scan that was acquired undersampled need not be sampled alike: each has its own mask.
        density = density_of_one(mask)
        seen = {name: mask} if name in self.validated else {}
        return mask, reserve(seen, {name: density}).get(name, nothing), density


def acquired(batch: Slice, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """K-space where the mask is true, zero elsewhere whatever stands there, in units of its zero-filled image; the
    maps; that image."""
    kspace = torch.where(mask[:, None], batch.kspace, 0)
    zero_filled = Sense(batch.maps).adjoint(kspace)
    size = zero_filled.abs().square().mean((-2, -1), keepdim=True).sqrt().clamp_min(1e-30)
    return kspace / size[:, None], batch.maps, zero_filled / size


def coarser(
    kspace: Tensor, maps: Tensor, mask: Tensor, density: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The problem with fewer voxels of the same field of view, all of whose k-space is sampled now and then.

    K-space is cropped to 0.7 of the sides of the acquired grid, maps are interpolated. The last of the results is the
    region, bool (batch, ky, kz), that masks for such a small grid would lie in, the acquired one scaled down: samples
    outside it must not be given. Slices that are too small for this stay as they are.
    """
    lies = density > 0
    grid = acquired_plane(lies)
    ky, kz = (2 * round(COARSE * n / 2) for n in grid)
    if min(ky, kz) < SMALLEST:
        return kspace, maps, mask, density, torch.ones_like(mask)
    rows, columns = mask.shape[-2:]
    whole = ..., centre(grid[0], rows), centre(grid[1], columns)
    middle = ..., centre(ky, rows), centre(kz, columns)
    region = interpolated(lies[whole].float(), (ky, kz)) > 0.5
    coarse = resampled(maps, (ky, kz))
    return kspace[middle], coarse, mask[middle], density[middle], region


def split(
    mask: Tensor,
    density: Tensor,
    share: tuple[float, float],
    region: Tensor | None = None,
    alike: int = 1,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Of masks (batch, ky, kz) what is given, and the weights of all samples in the loss: above 1 where held back.

    A sample is held back with probability s (1 - density), with s between the two numbers, one for each mask; outside
    the region always. For every `alike` consecutive masks the dice fall alike.

    >>> mask, density = torch.rand(3, 20, 16) < 0.5, torch.full((20, 16), 0.5)
    >>> given, weights = split(mask, density, (0.2, 0.8))
    >>> torch.equal(given, weights == 1), torch.equal(mask, weights > 0)
    (True, True)
    """
    count = len(mask) // alike
    drawn = (
        torch.empty(count, 1, 1).uniform_(*share, generator=generator),
        torch.rand(count, *mask.shape[1:], generator=generator),
    )
    shares, chance = (each.repeat_interleave(alike, 0).to(density.device) for each in drawn)
    given = mask & (chance >= shares * (1 - density))
    weights = weighted(mask, mask & ~given, shares, density)
    if region is None:
        return given, weights
    return given & region, torch.where(region, weights, mask / density.clamp_min(RAREST))


def weighted(mask: Tensor, held: Tensor, share: Tensor | float, density: Tensor) -> Tensor:
    """1 for a sample that is given, 1 + 1 / (share density) for one that is held back, 0 elsewhere."""
    return mask + held / (share * density.clamp_min(RAREST))


def reserve(masks: Mapping[str, Tensor], densities: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """For each scan the samples that validation predicts: a part of its mask that depends on the scan's name alone."""
    found = {}
    for name, mask in masks.items():
        generator = torch.Generator().manual_seed(stable_seed(name, "reserved"))
        found[name] = (
            mask & ~split(mask[None], densities[name], (RESERVED, RESERVED), generator=generator)[0][0]
        )
    return found


def density_of_one(mask: Tensor) -> Tensor:
    """The density (ky, kz) that a single mask (ky, kz) was drawn from, as far as its neighbourhoods tell.

    It is 1 in regions without a gap, such as that of calibration, and 0 beyond the outermost samples of both the row
    and the column.
    """
    hit = mask.float()[None]
    solid = max_pool2d(-max_pool2d(-hit, SOLID, 1, SOLID // 2), SOLID, 1, SOLID // 2)[0] > 0
    inside = _between(mask, 0) | _between(mask, 1)
    counted = (inside & ~solid).float()[None]
    total, count = (
        avg_pool2d(each, WINDOW_OF_ONE, 1, WINDOW_OF_ONE // 2)[0] for each in (counted * hit, counted)
    )
    return torch.where(solid, 1.0, inside * total / count.clamp_min(1e-9))


def _between(mask: Tensor, axis: int) -> Tensor:
    """Which points lie between samples along an axis, themselves included."""
    before = mask.int().cummax(axis).values
    after = mask.flip(axis).int().cummax(axis).values.flip(axis)
    return (before & after).bool()


def smoothed(density: Tensor) -> Tensor:
    """A density (ky, kz) counted on some masks, averaged over squares: a rare point would weigh too much or nothing.

    It stays 1 where every mask samples, and 0 outside the region that the masks lie in.
    """
    hit = (density > 0).float()[None]
    region = -max_pool2d(
        -max_pool2d(hit, 5, 1, 2), 5, 1, 2
    )  # gaps between the points belong to it, corners do not
    counted = region * (density < 1)
    total, count = (avg_pool2d(each, WINDOW, 1, WINDOW // 2)[0] for each in (counted * density, counted))
    return torch.where(density < 1, region[0] * total / count.clamp_min(1e-9), 1.0)
