"""Loss and scores in training."""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from data.masks.pool import draw
from data.scans.sense import sample
from data.scans.slices import Slice
from lab.experiment import Experiment
from mri.augment import flipped, noisier, shifted, turned
from mri.config import Loss, TrainConfig
from mri.losses import penalty, slice_ssim
from mri.models.parts.method import Method, echoes_per_slice


class Reconstruction(Experiment):
    """The loss of the recipe on randomly masked slices; validation by the error of the magnitude, and SSIM.

    Slices are divided by the standard deviation of their scan's target, so errors are in units of it.
    """

    config: TrainConfig
    model: Method
    unit: ClassVar[str] = "of the target's variance"
    """What the validation error is measured in."""

    def __init__(
        self,
        model: Method,
        config: TrainConfig,
        masks: Mapping[str, Tensor],
        validation_masks: Mapping[str, Tensor],
    ) -> None:
        """By scan: the masks (masks, ky, kz) to train with, as many for each, and the one (ky, kz) of validation."""
        super().__init__(model, config)
        self.masks, self.validation_masks = dict(masks), dict(validation_masks)
        pulled = model.parameters() if model.decays_to_start else ()
        self.start = {parameter: parameter.detach().clone() for parameter in pulled}

    def loss(self, batch: Slice) -> Tensor:
        mask = drawn(self.masks, batch, self.config.seed, self.current_epoch).to(batch.kspace.device)
        kspace, maps, target = normalised(batch)
        if self.config.shift:
            kspace, maps, target = shifted(kspace, maps, target, self.config.shift, self.alike(batch))
        if self.config.turn:
            kspace, target = turned(kspace, target)
        if self.config.flip:
            kspace, maps, target = flipped(kspace, maps, target)
        if self.config.noise:
            kspace = noisier(kspace, mask, self.config.noise)
        image = self.model(sample(kspace, mask), maps, mask, batch.echo)
        return penalty(cast(Loss, self.config.loss), image, target, self.config.similarity)

    def alike(self, batch: Slice) -> int:
        """How many consecutive slices of a batch move together: the echoes that are reconstructed together."""
        return echoes_per_slice(cast(Tensor, batch.echo)) if self.model.joins_echoes else 1

    def scores(self, batch: Slice) -> dict[str, Tensor]:
        masks = [self.validation_masks[scan_id] for scan_id in batch.scan_id]
        mask = torch.stack(masks).to(batch.kspace.device)
        kspace, maps, target = normalised(batch)
        image = self.model(sample(kspace, mask), maps, mask, batch.echo)
        error = (image.abs() - target.abs()).square().mean((-2, -1))
        return {"error": error, "ssim": slice_ssim(image, target)}

    def header(self) -> dict[str, Any]:
        return header(self.model, self.config)

    def parameter_groups(self) -> list[dict[str, Any]]:
        decay = 0.0 if self.start else self.config.weight_decay
        lr = cast(float, self.config.lr)  # settled by the recipe
        groups = []
        for factor, parameters in self.model.rates():
            if trained := [parameter for parameter in parameters if parameter.requires_grad]:
                groups.append({"params": trained, "lr": factor * lr, "weight_decay": decay})
        return groups

    def optimizer_step(self, epoch: int, batch_index: int, optimizer: Any, closure: Any = None) -> None:
        """A step, then decay towards the start, decoupled from the gradient as AdamW's towards zero is."""
        super().optimizer_step(epoch, batch_index, optimizer, closure)
        with torch.no_grad():
            for group in optimizer.param_groups if self.start else ():
                for parameter in group["params"]:
                    start = self.start[parameter].to(parameter.device)
                    parameter.lerp_(start, group["lr"] * self.config.weight_decay)


def header(method: Method, config: TrainConfig) -> dict[str, Any]:
    """What a weights file says about its method: enough to build it, and what it was trained for."""
    return {
        "app": config.app,
        "model": config.model,
        "plane": list(method.plane),
        "options": dict(config.options),
        "acc": config.acc,
        "mask": config.mask,
    }


def drawn(masks: Mapping[str, Tensor], batch: Slice, seed: int, epoch: int) -> Tensor:
    """A mask for each slice of a batch, (batch, ky, kz), out of those that its scan has."""
    names, positions = cast(list[str], batch.scan_id), cast(Tensor, batch.position)  # of a slice, stacked
    numbers = draw(seed, epoch, positions, len(masks[names[0]]))
    return torch.stack([masks[name][number] for name, number in zip(names, numbers, strict=True)])


def normalised(batch: Slice) -> tuple[Tensor, Tensor, Tensor]:
    """K-space, maps and target, divided by the standard deviation of |target| over each slice's scan."""
    scale = torch.as_tensor(batch.scale, dtype=torch.float32, device=batch.target.device)
    return batch.kspace / scale[:, None, None, None], batch.maps, batch.target / scale[:, None, None]
