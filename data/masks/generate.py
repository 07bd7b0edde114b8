"""One mask from one seed: a pure function for each kind.

`sigpy.mri.poisson` bisects on the slope of the density; for some seeds no slope gives the acceleration
and it either raises or never returns. So masks of this kind are made by `data.masks.workers` only.
"""

import numpy as np
from numpy.typing import NDArray

from data.masks.spec import LINE_KINDS, TOLERANCE, MaskSpec

Mask = NDArray[np.bool_]


def generate(spec: MaskSpec, seed: int) -> Mask:
    """The mask (ky, kz) of this kind and seed."""
    if spec.kind == "poisson":
        return poisson(spec, seed)
    return lines(spec, seed) if spec.kind in LINE_KINDS else random_points(spec, seed)


def poisson(spec: MaskSpec, seed: int) -> Mask:
    """Variable-density Poisson disc, density about 1 / (1 + slope |k|); may raise ValueError, may hang."""
    import sigpy.mri

    mask = sigpy.mri.poisson(
        spec.grid, spec.acceleration, spec.calibration_region, bool, seed=seed, tol=TOLERANCE
    )
    return np.asarray(mask, bool)


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
    distances = []
    for size, calibration in zip(spec.grid, spec.calibration_region, strict=True):
        distance = np.maximum(abs(np.arange(size) - size / 2) - calibration / 2, 0)
        distances.append(distance / distance.max())
    return np.hypot(distances[0][:, None], distances[1][None, :]) < 1


def _calibration(spec: MaskSpec) -> tuple[slice, slice]:
    from data.sense import centre  # not above: it brings torch, which the Poisson workers never need

    ky, kz = (centre(inner, outer) for inner, outer in zip(spec.calibration_region, spec.grid, strict=True))
    return ky, kz
