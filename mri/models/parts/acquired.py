"""A reconstruction on the grid that was acquired, whatever zeros its k-space is padded with.

Scanners store more points than they acquire: SKM-TEA 512 x 160 for 416 x 80. The padding only interpolates the image,
but everything that works on its points (patches, filters) then sees other images, smooth ones, and what it learns there
fails where nothing was padded. On the acquired grid both look alike, and there are fewer points.
"""

from collections.abc import Callable
from math import ceil

import torch
from torch import Tensor

from data.scans.sense import Sense, centre


def on_acquired_grid(
    reconstruct: Callable[[Tensor, Tensor, Tensor], Tensor], kspace: Tensor, maps: Tensor, mask: Tensor
) -> Tensor:
    """Images (batch, ky, kz) by `reconstruct(kspace, maps, mask)`, called with everything on the acquired grid.

    The image x that it returns goes to the stored grid as a fully sampled scan does, A^H pad(A' x), with A' and A the
    measurements by all points of the acquired and of the stored grid.
    """
    stored = (mask.shape[-2], mask.shape[-1])
    acquired = acquired_plane(mask)
    if acquired == stored:
        return reconstruct(kspace, maps, mask)
    inside = ..., centre(acquired[0], stored[0]), centre(acquired[1], stored[1])
    coarse = resampled(maps, acquired)
    image = reconstruct(kspace[inside], coarse, mask[inside])
    padded = torch.zeros_like(kspace)
    padded[inside] = Sense(coarse)(image)
    return Sense(maps).adjoint(padded)


def acquired_plane(mask: Tensor) -> tuple[int, int]:
    """Size of the smallest centred grid that has all samples of the masks (batch, ky, kz), and is quick to transform.

    >>> mask = torch.zeros(1, 96, 40, dtype=torch.bool)
    >>> mask[:, 9:87, 10:30] = True
    >>> acquired_plane(mask)
    (80, 20)
    """
    sampled = mask.flatten(0, -3).any(0)
    sides = []
    for n, line in zip(mask.shape[-2:], (sampled.any(1), sampled.any(0)), strict=True):
        places = line.nonzero()[:, 0].tolist() or [n // 2]
        needed = max(2 * (n // 2 - places[0]), 2 * (places[-1] - n // 2 + 1))
        sides.append(min(n, _quick(needed)))
    return sides[0], sides[1]


def resampled(maps: Tensor, plane: tuple[int, int]) -> Tensor:
    """Coil maps (..., ky, kz) on a coarser grid over the same field of view, linearly; sum_c |S_c|^2 is kept."""
    coarse = interpolated(maps, plane)
    wanted = interpolated(maps.abs().square().sum(-3, keepdim=True), plane)
    found = coarse.abs().square().sum(-3, keepdim=True)
    return coarse * (wanted / found.clamp_min(torch.finfo(found.dtype).tiny)).sqrt()


def interpolated(field: Tensor, plane: tuple[int, int]) -> Tensor:
    """A field (..., ky, kz) on another grid over the same extent, linearly; its centre stays the centre.

    >>> interpolated(torch.tensor([[0.0, 1.0, 2.0, 3.0]]), (1, 8))
    tensor([[0.0000, 0.5000, 1.0000, 1.5000, 2.0000, 2.5000, 3.0000, 3.0000]])
    """
    rows, columns = (
        _interpolation(n, old, field).to(field.dtype) for n, old in zip(plane, field.shape[-2:], strict=True)
    )
    return rows @ field @ columns.mT


def _interpolation(n: int, old: int, like: Tensor) -> Tensor:
    """The matrix (n, old) that interpolates linearly between points of an axis; its centres are on each other."""
    position = ((torch.arange(n, dtype=torch.float64) - n // 2) * (old / n) + old // 2).clamp(0, old - 1)
    distance = (position[:, None] - torch.arange(old)).abs()
    return (1 - distance).clamp_min(0).to(like.device, like.dtype.to_real())


def _quick(n: int) -> int:
    """The next even number without prime factors above 5.

    >>> [_quick(n) for n in (2, 78, 416)]
    [2, 80, 432]
    """
    candidate = 2 * ceil(n / 2)
    while True:
        left = candidate
        for prime in (2, 3, 5):
            while left % prime == 0:
                left //= prime
        if left == 1:
            return candidate
        candidate += 2
