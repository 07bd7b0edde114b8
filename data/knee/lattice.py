"""Smooth random fields: independent numbers on a coarse lattice, joined by cubic B-splines."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data.knee.shapes import Field


class Axis(NamedTuple):
    """Centres of voxels along an axis, and how wide a voxel is, in mm."""

    points: Field
    width: float

    def widened(self) -> "Axis":
        """One voxel more at either end."""
        first, last = self.points[:1] - self.width, self.points[-1:] + self.width
        return Axis(np.concatenate([first, self.points, last]), self.width)


Axes = tuple[Axis, Axis, Axis]


@dataclass(frozen=True)
class Lattice:
    """A field of mean 0 and standard deviation 1, defined everywhere within `half_extent` of the origin (mm).

    The numbers belong to the lattice and not to the image grid: a subject looks the same at every matrix
    size, and any slab of it can be made on its own.
    """

    values: NDArray[np.float32]
    spacing: tuple[float, float, float]
    half_extent: tuple[float, float, float]

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        spacing: tuple[float, float, float],
        half_extent: tuple[float, float, float] = (100.0, 100.0, 80.0),
    ) -> "Lattice":
        """Independent normal numbers, `spacing` mm apart."""
        shape = [int(np.ceil(2 * h / s)) + 4 for h, s in zip(half_extent, spacing, strict=True)]
        # A cubic B-spline of white numbers has variance (151/315)^3 per point on average.
        values = rng.standard_normal(shape, dtype=np.float32) / np.float32((151 / 315) ** 1.5)
        return cls(values, spacing, half_extent)

    def on(self, axes: Axes) -> Field:
        """The field on the grid of three axes in mm, averaged over the extent of each voxel."""
        weights = [
            spline_weights(a, -h, s, n)
            for a, h, s, n in zip(axes, self.half_extent, self.spacing, self.values.shape, strict=True)
        ]
        along_x = (weights[0] @ self.values.reshape(len(self.values), -1)).reshape(-1, *self.values.shape[1:])
        return (weights[1] @ along_x) @ weights[2].T


def spline_weights(axis: Axis, first: float, spacing: float, count: int) -> NDArray[np.float32]:
    """Matrix (points, count) of cubic B-spline weights, averaged over each voxel."""
    samples = 1 + int(2 * axis.width / spacing)
    offsets = ((np.arange(samples) + 0.5) / samples - 0.5) * axis.width
    position = (axis.points[:, None] + offsets - first) / spacing + 1.5
    distance = np.abs(position[:, :, None] - np.arange(count))
    weight = np.where(
        distance < 1, 2 / 3 - distance**2 + distance**3 / 2, np.maximum(2 - distance, 0.0) ** 3 / 6
    )
    return weight.mean(axis=1).astype(np.float32)
