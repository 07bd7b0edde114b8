"""What every model is asked by those who train, list and apply it."""

from typing import Self

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from monarch_core import Transform
from pde.models.parts.resolution import Resolution, sides


class Model(nn.Module):
    """A network from (batch, x, y, channel) to the fields of the next frame, (batch, x, y, field).

    A model may also take fields on a finer grid than that of the data: `refined` leads there, `seen` back.

    Where its transforms learn, `transform_lr` is their learning rate relative to that of the rest, and
    `transform_decay` pulls them towards their start.
    """

    transform_lr: float = 1.0
    transform_decay: float = 0.0
    transform_from: float = 0.0
    """The share of the training after which the transforms begin to learn."""
    transports: bool = False
    """Whether `step` carries the fields instead of leaving them where they are."""
    lead: int = 0
    """Steps through known frames before a forecast, by which a model finds out what they do not show."""
    refine_from: float = 0.0
    """The share of the training after which `step` works on its finer grid, where it has one."""

    def __init__(self, in_channels: int, resolution: Resolution) -> None:
        super().__init__()
        self.in_channels, self.resolution = in_channels, sides(resolution)

    def step(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """What is there after a step without anything new, and what is new, both (batch, x, y, field)."""
        new: Tensor = self(frames)
        return frames[..., -new.shape[-1] :], new

    def refined(self, fields: Tensor) -> Tensor:
        """Fields (batch, x, y, ...) of the data's grid on the finest that `step` works on."""
        return fields

    def seen(self, fields: Tensor) -> Tensor:
        """Fields (batch, x, y, ...) at the points of the data's grid."""
        return fields

    def learn_transforms(self, learn: bool) -> None:
        """Let the transforms learn, or keep them as they are."""
        for parameter in self.transform_parameters():
            parameter.requires_grad_(learn)

    def flops(self) -> int:
        """Real operations of one forward pass on one field."""
        counter = FlopCounterMode(display=False)
        training = self.training
        with counter, torch.inference_mode():
            self.eval()(torch.zeros(1, *self.resolution, self.in_channels))
        self.train(training)
        return int(counter.get_total_flops())

    def transform_parameters(self) -> list[nn.Parameter]:
        """What is learned of the transforms; nothing in a Fourier operator."""
        transforms = (module for module in self.modules() if isinstance(module, Transform))
        return list(dict.fromkeys(parameter for module in transforms for parameter in module.parameters()))

    def not_resampled_because(self, resolution: Resolution) -> str | None:
        """Why the model cannot move to another grid; None if it can, by `resampled`."""
        return "a convolution's kernel belongs to one mesh width"

    def resampled(self, resolution: Resolution) -> Self:
        """Move to another grid, in place."""
        raise NotImplementedError(self.not_resampled_because(resolution))
