"""What lies within the cells of a coarse grid, as channels of it; of twice as many points nothing is lost."""

import torch
from torch import Tensor

from pde.models.parts.constants import Constants
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.splines import resampling


class Cells(Constants):
    """A field on a grid twice as fine as a coarse one, whose four values in each coarse cell become channels.

    Where an axis ends (`bounded`), points are the middles of their cells, and values are means over the halves of a
    coarse cell. A half that is no whole number of fine cells takes its share of those it overlaps. Along a periodic
    axis they are values of the Fourier series. So a field has the same channels on any number of points that
    resolve it.

    >>> cells, field = Cells((4, 4), (2, 2), (True, True)), torch.arange(16.0).view(1, 4, 4, 1)
    >>> cells(field)[0, 0, 1]
    tensor([2., 3., 6., 7.])
    """

    along0: Tensor
    along1: Tensor

    def __init__(self, fine: Resolution, coarse: Resolution, bounded: tuple[bool, bool]) -> None:
        super().__init__()
        self.coarse, self.bounded = sides(coarse), bounded
        self.parts = tuple(1 if points == 1 else 2 for points in self.coarse)
        for axis, points in enumerate(sides(fine)):
            along = shares if bounded[axis] else resampling
            self.constant(f"along{axis}", along(points, self.coarse[axis] * self.parts[axis]))

    @property
    def per_field(self) -> int:
        """Channels that a channel of the field becomes."""
        return self.parts[0] * self.parts[1]

    def flops(self, channels: int) -> int:
        """Real operations on one field with so many channels."""
        (rows, above), (columns, beside) = self.along0.shape, self.along1.shape
        return 2 * channels * (rows * above * beside + rows * beside * columns)

    def forward(self, field: Tensor) -> Tensor:
        """(batch, x, y, channel) to (batch, coarse x, coarse y, part of each channel), channels slowest in memory."""
        image = field.permute(3, 0, 1, 2)
        image = self.along0.to(image.dtype) @ image @ self.along1.to(image.dtype).mT
        (rows, columns), (down, right) = self.coarse, self.parts
        image = image.reshape(*image.shape[:2], rows, down, columns, right)
        return image.permute(0, 3, 5, 1, 2, 4).flatten(0, 2).permute(1, 2, 3, 0)


def shares(points: int, parts: int) -> Tensor:
    """The mean over each of so many equal parts of an interval, of a function that is constant around each point.

    >>> shares(2, 3)
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000],
            [0.0000, 1.0000]], dtype=torch.float64)
    """
    part, cell = torch.arange(parts)[:, None], torch.arange(points)  # in units of 1 / (points * parts)
    begin = torch.maximum(part * points, cell * parts)
    end = torch.minimum((part + 1) * points, (cell + 1) * parts)
    return (end - begin).clamp(min=0).double() / points
