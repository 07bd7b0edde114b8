"""The U-Net of Turbulent-Flow-Net (Wang et al. 2020)."""

import torch
from torch import Tensor, nn

from pde.models.parts.model import Model
from pde.models.parts.resolution import Resolution
from pde.models.parts.stages import decode, encode


class UNet(Model):
    """Five stages down to 1024 channels and five up, with skips; 24,950,491 parameters with 10 frames in."""

    def __init__(self, in_channels: int, resolution: Resolution, fields: int = 1) -> None:
        super().__init__(in_channels, resolution)
        for side in self.resolution:
            if side % 32:
                raise ValueError(f"the U-Net halves the grid five times; {side} is not a multiple of 32.")
        self.down = nn.ModuleList(
            (
                encode(in_channels, 64, 2),
                encode(64, 128, 2),
                nn.Sequential(encode(128, 256, 2), encode(256, 256, 1)),
                nn.Sequential(encode(256, 512, 2), encode(512, 512, 1)),
                nn.Sequential(encode(512, 1024, 2), encode(1024, 1024, 1)),
            )
        )
        widths = ((1024, 256), (768, 128), (384, 64), (192, 32), (96, 16))
        self.up = nn.ModuleList(decode(channels, out) for channels, out in widths)
        self.last = nn.Conv2d(16 + in_channels, fields, 3, padding=1)

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, x, y, channel) to the next frame (batch, x, y, field)."""
        skips = [frames.permute(0, 3, 1, 2)]
        for stage in self.down:
            skips.append(stage(skips[-1]))
        x = skips.pop()
        for stage in self.up:
            x = torch.cat((skips.pop(), stage(x)), dim=1)
        return self.last(x).permute(0, 2, 3, 1)
