"""A residual network of 18 convolutions."""

from torch import Tensor, nn

from pde.models.parts.model import Model
from pde.models.parts.resolution import Resolution


class Block(nn.Module):
    """x + two convolutions with batch norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(x + self.body(x))


class ResNet(Model):
    """One convolution in, eight residual blocks of two, one convolution out.

    The published baseline has 18 convolutions and 266,641 parameters; its exact layout is unknown. Width 43 comes
    nearest: 271,933. (Ten convolutions of width 60 would give 266,641 exactly.)
    """

    def __init__(self, in_channels: int, resolution: Resolution, fields: int = 1, *, width: int = 43) -> None:
        super().__init__(in_channels, resolution)
        self.first = nn.Sequential(nn.Conv2d(in_channels, width, 3, padding=1), nn.ReLU())
        self.blocks = nn.Sequential(*(Block(width) for _ in range(8)))
        self.last = nn.Conv2d(width, fields, 3, padding=1)

    def forward(self, frames: Tensor) -> Tensor:
        """(batch, x, y, channel) to the next frame (batch, x, y, field)."""
        return self.last(self.blocks(self.first(frames.permute(0, 3, 1, 2)))).permute(0, 2, 3, 1)
