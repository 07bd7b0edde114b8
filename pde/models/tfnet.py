"""TF-Net (Wang et al. 2020): the flow split in three by learnable filters, an encoder for each part."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from pde.models.parts.model import Model
from pde.models.parts.resolution import Resolution
from pde.models.parts.stages import decode, encode


class Encoder(nn.Module):
    """Four stages, each half as wide on the grid; all four results are used."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        widths = (channels, 64, 128, 256, 512)
        self.stages = nn.ModuleList(encode(before, after, 2, bias=True) for before, after in pairwise(widths))

    def forward(self, x: Tensor) -> list[Tensor]:
        results = []
        for stage in self.stages:
            x = stage(x)
            results.append(x)
        return results


class TFNet(Model):
    """u = mean + deviation in time + deviation in space; 7,451,724 parameters with 10 frames in.

    A 3 x 3 spatial filter and weights over `window` = 3 frames make the parts, as moving averages of 7 frames, so
    of ten frames the last nine are used. Fewer frames in make both numbers smaller.
    """

    def __init__(self, in_channels: int, resolution: Resolution, fields: int = 1) -> None:
        super().__init__(in_channels, resolution)
        if fields != 1:
            raise ValueError(f"TF-Net forecasts one field from frames of it; here are {fields}.")
        for side in self.resolution:
            if side % 16:
                raise ValueError(f"TF-Net halves the grid four times; {side} is not a multiple of 16.")
        self.window = min(3, in_channels)
        self.frames = min(7, in_channels - self.window + 1)
        self.spatial = nn.Conv2d(1, 1, 3, padding=1, bias=False)
        self.temporal = nn.Parameter(torch.ones(self.window))
        self.encoders = nn.ModuleList(Encoder(self.frames) for _ in range(3))
        widths = (512, 256, 128, 64, 32)
        self.up = nn.ModuleList(decode(before, after) for before, after in pairwise(widths))
        self.last = nn.Conv2d(32 + self.frames, 1, 3, padding=1)

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, x, y, channel) to the next frame (batch, x, y, field)."""
        x = frames.permute(0, 3, 1, 2)[:, -(self.frames + self.window - 1) :]
        now = x[:, -self.frames :]
        filtered = self.spatial(x.flatten(0, 1)[:, None]).view_as(x)
        mean = sum(
            weight * filtered[:, first : first + self.frames] for first, weight in enumerate(self.temporal)
        )
        parts = (mean, filtered[:, -self.frames :] - mean, now - filtered[:, -self.frames :])
        encoded = [encoder(part) for encoder, part in zip(self.encoders, parts, strict=True)]
        sums = [first + second + third for first, second, third in zip(*encoded, strict=True)]
        y = self.up[0](sums.pop())
        for stage in self.up[1:]:
            y = stage(y + sums.pop())
        return self.last(torch.cat((now, y), dim=1)).permute(0, 2, 3, 1)
