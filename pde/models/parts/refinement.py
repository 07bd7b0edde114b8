"""A finer grid for a field that is carried.

A flow makes scales that the points of the data do not resolve. Seen at those points they pass for coarser ones, and
carried as such they are wrong in every step that follows. On a finer grid they are carried on. The data's points are
among its own, so that what the data would show of the field is at hand.
"""

import torch
from torch import Tensor

from pde.models.parts.constants import Constants
from pde.models.parts.splines import upsampling

BEGINS = 0.5
"""The share of a training after which fields are carried on the finer grid: its steps take twice as long."""


class Refinement(Constants):
    """From the points of a torus to a grid with `times` as many along each axis, and back.

    >>> finer, field = Refinement((4, 6), 2), torch.randn(1, 4, 6, 1)
    >>> finer.refined(field).shape, torch.allclose(finer.seen(finer.refined(field)), field, atol=1e-6)
    (torch.Size([1, 8, 12, 1]), True)
    """

    def __init__(self, resolution: tuple[int, int], times: int) -> None:
        super().__init__()
        self.times, self.resolution = times, (times * resolution[0], times * resolution[1])
        for axis, n in enumerate(resolution):
            self.constant(f"along{axis}", upsampling(n, times))

    def refined(self, fields: Tensor) -> Tensor:
        """Fields (batch, x, y, ...) of the coarser grid on the finer one, by their Fourier series."""
        image = fields.flatten(3).permute(0, 3, 1, 2)
        along_x, along_y = (self.get_buffer(f"along{axis}").to(image) for axis in range(2))
        return (along_x @ image @ along_y.mT).permute(0, 2, 3, 1).unflatten(-1, fields.shape[3:])

    def seen(self, fields: Tensor) -> Tensor:
        """Fields (batch, x, y, ...) at the points of the coarser grid, on which they may be already."""
        return fields[:, :: self.times, :: self.times] if self.is_fine(fields) else fields

    def is_fine(self, fields: Tensor) -> bool:
        """Whether fields (batch, x, y, ...) are those of the finer grid."""
        return tuple(fields.shape[1:3]) == self.resolution


def nearest(finer: tuple[int, int], coarser: tuple[int, int]) -> Tensor:
    """For each mode of the finer of two planes with so many modes along x and y, the nearest one of the coarser.

    Modes come as in a `PlaneTransform` on a torus: those of y from 0 up, and for each of them those of x from 0 up and
    then those below 0.

    >>> nearest((2, 2), (1, 1))
    tensor([0, 0, 1, 1, 0, 0, 1, 1])
    """
    (x, y), (coarse_x, coarse_y) = finer, coarser
    along_x = torch.cat((torch.arange(x), torch.arange(-x, 0))).clamp(-coarse_x, coarse_x - 1) % (
        2 * coarse_x
    )
    along_y = torch.arange(y).clamp(max=coarse_y - 1)
    return (along_y[:, None] * (2 * coarse_x) + along_x).flatten()
