"""Implicit surfaces: level functions in millimetres, negative inside, and the coverage of voxels by them.

A shape is an array of signed distances (to first order) on a grid of points.  Shapes are combined with
minimum and maximum, or smoothly with `blend`; `coverage` turns the result into partial volumes.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.floating[Any]]
"""float32 where volumes are concerned."""
Point = Sequence[float]


def ellipsoid(x: Field, y: Field, z: Field, centre: Point, semi_axes: Point) -> Field:
    """Distance to an ellipsoid, exact to first order near its surface: r (r - 1) / |p / a^2|, r = |p / a|."""
    p, q, s = (c - o for c, o in zip((x, y, z), centre, strict=True))
    a, b, c = semi_axes
    r = np.sqrt((p / a) ** 2 + (q / b) ** 2 + (s / c) ** 2)
    gradient = np.sqrt((p / a**2) ** 2 + (q / b**2) ** 2 + (s / c**2) ** 2)
    return r * (r - 1) / np.maximum(gradient, 1e-6)


def tube(
    y: Field, z: Field, centre: tuple[Field, Field], semi_axes: tuple[Field, Field], power: float = 2.0
) -> Field:
    """Distance to a tube along x whose section may differ from row to row.

    The section is the superellipse |p/a|^n + |q/b|^n = 1: an ellipse for n = 2, squarer for a larger `power`.
    """
    (cy, cz), (a, b) = centre, semi_axes
    p, q = np.abs(y - cy) / a, np.abs(z - cz) / b
    if power == 2:
        r = np.sqrt(p * p + q * q)
        gradient = np.sqrt((p / a) ** 2 + (q / b) ** 2)
    else:
        r = (p**power + q**power) ** np.float32(1 / power)
        lower = power - 1
        gradient = np.sqrt((p**lower / a) ** 2 + (q**lower / b) ** 2) / np.maximum(r, 1e-3) ** (lower - 1)
    return r * (r - 1) / np.maximum(gradient, 1e-6)


def band(
    x: Field, y: Field, z: Field, start: Point, end: Point, *, radius: float, widen: float = 1.0
) -> Field:
    """Distance to a capsule from `start` to `end`; `widen` > 1 flattens it into a ribbon, wide along z."""
    (ax, ay, az), (bx, by, bz) = start, end
    ux, uy, uz = bx - ax, by - ay, (bz - az) / widen
    px, py, pz = x - ax, y - ay, (z - az) / widen
    along = np.clip((px * ux + py * uy + pz * uz) / (ux**2 + uy**2 + uz**2), 0.0, 1.0)
    return np.sqrt((px - along * ux) ** 2 + (py - along * uy) ** 2 + (pz - along * uz) ** 2) - radius


def chain(x: Field, y: Field, z: Field, points: Sequence[Point], *, radius: float) -> Field:
    """Distance to a chain of capsules through `points`, their joints rounded off."""
    pieces = (band(x, y, z, a, b, radius=radius) for a, b in pairwise(points))
    return reduce(lambda whole, piece: blend(whole, piece, radius), pieces)


def blend(first: Field, second: Field, width: float) -> Field:
    """Union whose seam is rounded over `width`: min(f, g) - h^2 / (4 w), h = max(w - |f - g|, 0)."""
    overlap = np.maximum(width - np.abs(first - second), 0.0)
    return np.minimum(first, second) - overlap**2 / (4 * width)


def carve(shape: Field, tool: Field, width: float) -> Field:
    """`shape` without `tool`, the edge rounded over `width`."""
    return -blend(-shape, tool, width)


def coverage(level: Field) -> Field:
    """Fraction of each voxel inside a level function, without the first and the last row.

    To first order the surface is a plane; a voxel's share of one side changes from 0 to 1 while the level
    changes by the sum of its absolute differences from voxel to voxel along the three axes.  The level may
    therefore be any smooth function with the right zero set, on voxels of any shape.
    """
    inner = level[1:-1]
    change = np.abs(level[2:] - level[:-2])
    for axis in (1, 2):
        change += 2 * np.abs(np.gradient(inner, axis=axis))
    change *= 0.5
    np.maximum(change, 1e-6, out=change)
    return np.clip(0.5 - inner / change, 0.0, 1.0)
