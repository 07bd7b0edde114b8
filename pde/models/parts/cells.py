"""What lies within the cells of a coarse grid, as channels of it; of twice as many points nothing is lost."""

import torch
from torch import Tensor

from pde.models.parts.constants import Constants
from pde.models.parts.resolution import Resolution, sides


class Cells(Constants):
    """Means of a field over the parts of each coarse cell, two along every axis that has several points.

    A part that is no whole number of fine cells takes its share of those it overlaps; so fields on any number of points
    have the same means, as far as they resolve them.

    >>> cells, field = Cells((4, 4), (2, 2)), torch.arange(16.0).view(1, 4, 4, 1)
    >>> cells(field)[0, 0, 1]
    tensor([2., 3., 6., 7.])
    """

    along0: Tensor
    along1: Tensor

    def __init__(self, fine: Resolution, coarse: Resolution) -> None:
        super().__init__()
        self.coarse = sides(coarse)
        self.parts = tuple(1 if points == 1 else 2 for points in self.coarse)
        for axis, points in enumerate(sides(fine)):
            self.constant(f"along{axis}", shares(points, self.coarse[axis] * self.parts[axis]))

    @property
    def per_field(self) -> int:
        """Channels that a channel of the field becomes."""
        return self.parts[0] * self.parts[1]

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
