"""One mask from one seed: a pure function for each kind."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from data.masks.spec import LINE_KINDS, TOLERANCE, MaskSpec

Mask = NDArray[np.bool_]

ATTEMPTS_PER_POINT = 30
"""How often a neighbour is tried around each point; sigpy's default."""
SEARCH_STEPS = 24


def generate(spec: MaskSpec, seed: int) -> Mask:
    """The mask (ky, kz) of this kind and seed."""
    if spec.kind == "poisson":
        return poisson(spec, seed)
    return lines(spec, seed) if spec.kind in LINE_KINDS else random_points(spec, seed)


def poisson(spec: MaskSpec, seed: int) -> Mask:
    """Variable-density Poisson disc; a ValueError if no slope of the density gives the acceleration.

    The search begins at the slope that suits most seeds, so that it usually ends at once, and is bounded.
    """
    slope, low, high = _typical_slope(spec), 0.0, math.inf
    for _ in range(SEARCH_STEPS):
        mask = poisson_disc(spec, slope, seed)
        excess = spec.actual_acceleration(int(mask.sum())) - spec.acceleration
        if abs(excess) < TOLERANCE:
            return mask
        low, high = (slope, high) if excess < 0 else (low, slope)
        slope = 1.25 * low if high == math.inf else high / 1.25 if low == 0 else (low + high) / 2
    raise ValueError("no slope of the density gives the acceleration")


def poisson_disc(spec: MaskSpec, slope: float, seed: int) -> Mask:
    """Discs of radius 1 + slope |k|, so that points lie ever further apart, and the calibration region; by sigpy.

    This is the inner function of `sigpy.mri.poisson`, called as it calls it. The outer one searches the slope anew
    for each mask, which takes three times as long, and for some seeds never ends.
    """
    from sigpy.mri.samp import _poisson

    ky, kz = spec.grid
    radius = 1 + slope * _radius(spec)
    radius_ky, radius_kz = (np.maximum(radius * side / max(spec.grid), 1) for side in spec.grid)
    points = _poisson(kz, ky, ATTEMPTS_PER_POINT, radius_kz, radius_ky, spec.calibration_region, seed)
    return (points > 0) & inside_corners(spec)


@lru_cache
def _typical_slope(spec: MaskSpec) -> float:
    """The slope that gives the acceleration on average over a few seeds, by bisection."""
    low, high = 0.0, float(max(spec.grid))
    for _ in range(SEARCH_STEPS):
        slope = (low + high) / 2
        samples = np.mean([poisson_disc(spec, slope, seed).sum() for seed in range(3)])
        excess = spec.grid[0] * spec.grid[1] / samples - spec.acceleration
        if abs(excess) < TOLERANCE / 5:
            break
        low, high = (slope, high) if excess < 0 else (low, slope)
    return slope


def random_points(spec: MaskSpec, seed: int) -> Mask:
    """The calibration region, and points drawn uniformly from the rest of the ellipse."""
    mask = np.zeros(spec.grid, bool)
    mask[_calibration(spec)] = True
    free = np.flatnonzero(inside_corners(spec) & ~mask)
    missing = round(mask.size / spec.acceleration) - int(mask.sum())
    mask.flat[np.random.default_rng(seed).choice(free, missing, replace=False)] = True
    return mask


def lines(spec: MaskSpec, seed: int) -> Mask:
    """The calibration lines, and either equispaced or random ones among the others."""
    rng = np.random.default_rng(seed)
    num_lines = spec.grid[1]
    chosen = np.zeros(num_lines, bool)
    chosen[_calibration(spec)[1]] = True
    free = np.flatnonzero(~chosen)
    missing = max(1, round(num_lines / spec.acceleration)) - int(chosen.sum())
    if missing > 0 and spec.kind == "uniform":
        spacing = len(free) / missing
        chosen[free[(rng.uniform(0, spacing) + spacing * np.arange(missing)).astype(int)]] = True
    elif missing > 0:
        chosen[rng.choice(free, missing, replace=False)] = True
    return np.broadcast_to(chosen, spec.grid).copy()


def inside_corners(spec: MaskSpec) -> Mask:
    """What is left when the corners are cropped: |k| < 1, counted from the edge of the calibration region."""
    return _radius(spec) < 1


def _radius(spec: MaskSpec) -> NDArray[np.float64]:
    """|k|: 0 in the calibration region, 1 at the middle of the grid's edges."""
    distances = []
    for size, calibration in zip(spec.grid, spec.calibration_region, strict=True):
        distance = np.maximum(abs(np.arange(size) - size / 2) - calibration / 2, 0)
        distances.append(distance / distance.max())
    return np.hypot(distances[0][:, None], distances[1][None, :])


def _calibration(spec: MaskSpec) -> tuple[slice, slice]:
    from data.sense import centre  # not above: it brings torch, which the Poisson workers never need

    ky, kz = (centre(inner, outer) for inner, outer in zip(spec.calibration_region, spec.grid, strict=True))
    return ky, kz
