"""One mask from one seed: a pure function for each kind."""

import numpy as np

from data.masks.plane import Mask, calibration, inside_corners
from data.masks.poisson import poisson
from data.masks.spec import LINE_KINDS, MaskSpec


def generate(spec: MaskSpec, seed: int) -> Mask:
    """The mask (ky, kz) of this kind and seed."""
    if spec.kind == "poisson":
        return poisson(spec, seed)
    return lines(spec, seed) if spec.kind in LINE_KINDS else random_points(spec, seed)


def random_points(spec: MaskSpec, seed: int) -> Mask:
    """The calibration region, and points drawn uniformly from the rest of the ellipse."""
    mask = calibration(spec)
    free = np.flatnonzero(inside_corners(spec) & ~mask)
    missing = spec.num_samples - int(mask.sum())
    mask.flat[np.random.default_rng(seed).choice(free, missing, replace=False)] = True
    return mask


def lines(spec: MaskSpec, seed: int) -> Mask:
    """The calibration lines, and either equispaced or random ones among the others."""
    rng = np.random.default_rng(seed)
    num_lines = spec.grid[1]
    chosen = calibration(spec)[spec.grid[0] // 2]
    free = np.flatnonzero(~chosen)
    missing = max(1, round(num_lines / spec.acceleration)) - int(chosen.sum())
    if missing > 0 and spec.kind == "uniform":
        spacing = len(free) / missing
        chosen[free[(rng.uniform(0, spacing) + spacing * np.arange(missing)).astype(int)]] = True
    elif missing > 0:
        chosen[rng.choice(free, missing, replace=False)] = True
    return np.broadcast_to(chosen, spec.grid).copy()
