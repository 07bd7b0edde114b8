"""Variable-density Poisson discs on a grid, in a bounded number of steps.

Every point of the grid is visited once, in random order, and taken if no disc of an earlier point covers it. Discs
are ellipses that grow with |k|, so that points lie ever further apart:

    radius = max((1 + slope |k|) side / longest side, 1) - SLACK        along each axis,

around the point, moved at random within its cell (whole grid steps alone would give only a few densities). As many
are taken as the acceleration asks for. With this SLACK the density is that of `sigpy.mri.poisson`, whose points may
lie anywhere in their cells, but whose search for the slope does not end for every seed.
"""

from functools import lru_cache
from math import ceil, floor, sqrt

import numpy as np
from numpy.typing import NDArray

from data.masks.plane import Mask, calibration, inside_corners, radius
from data.masks.spec import MaskSpec

SLACK = 1 / 3
SEARCH_STEPS = 16


def poisson(spec: MaskSpec, seed: int) -> Mask:
    """The calibration region and as many uncovered points, in the order of the visit, as the acceleration asks for.

    In the rare case that the discs leave room for fewer, the first of the covered points make up the number.
    """
    mask = calibration(spec)
    order, uncovered = visit(spec, typical_slope(spec), seed)
    chosen = np.concatenate([order[uncovered], order[~uncovered]])
    mask.flat[chosen[: spec.num_samples - mask.sum()]] = True
    return mask


@lru_cache
def typical_slope(spec: MaskSpec) -> float:
    """The largest slope whose discs leave room for a few more points than are needed, by bisection."""
    needed = spec.num_samples - calibration(spec).sum()
    room = needed + sqrt(needed)  # for some seeds there is less, by a small part of the square root
    low, high = 0.0, float(max(spec.grid))
    for _ in range(SEARCH_STEPS):
        slope = (low + high) / 2
        low, high = (slope, high) if visit(spec, slope, seed=0)[1].sum() > room else (low, slope)
    return low


def visit(spec: MaskSpec, slope: float, seed: int) -> tuple[NDArray[np.int64], Mask]:
    """The points outside the calibration region in the order of the visit, and which of them no disc covers."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(inside_corners(spec) & ~calibration(spec)))
    offsets = rng.uniform(-0.5, 0.5, (2, len(order)))
    longer = int(np.argmax(spec.grid))  # discs are marked in runs along the axis on which they are longer
    points, centres, radii = [], [], []
    for axis in (longer, 1 - longer):
        points.append(np.unravel_index(order, spec.grid)[axis])
        centres.append(points[-1] + offsets[axis])
        scaled = (1 + slope * radius(spec).flat[order]) * spec.grid[axis] / max(spec.grid)
        radii.append(np.maximum(scaled, 1) - SLACK)

    length, width = max(spec.grid), min(spec.grid)
    covered = [bytearray(length) for _ in range(width)]
    ones = b"\1" * length
    uncovered = np.zeros(len(order), bool)
    # Plain lists and bytes: a disc covers a few points, for which numpy's calls would take ten times as long.
    columns = (column.tolist() for column in (*points, *centres, *radii))
    for number, (u, v, centre_u, centre_v, radius_u, radius_v) in enumerate(zip(*columns, strict=True)):
        if covered[v][u]:
            continue
        uncovered[number] = True
        for line in range(max(ceil(centre_v - radius_v), 0), min(floor(centre_v + radius_v) + 1, width)):
            half = radius_u * sqrt(max(1 - ((line - centre_v) / radius_v) ** 2, 0))
            start, stop = max(ceil(centre_u - half), 0), min(floor(centre_u + half) + 1, length)
            if start < stop:
                covered[line][start:stop] = ones[start:stop]
    return order, uncovered
