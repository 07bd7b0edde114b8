"""The plane (ky, kz) in which points are sampled: its centre, its corners, and |k|."""

import numpy as np
from numpy.typing import NDArray

from data.masks.spec import MaskSpec
from data.scans.sense import centre

Mask = NDArray[np.bool_]


def calibration(spec: MaskSpec) -> Mask:
    """The calibration region, which every mask samples."""
    mask = np.zeros(spec.grid, bool)
    ky, kz = (centre(inner, outer) for inner, outer in zip(spec.calibration_region, spec.grid, strict=True))
    mask[ky, kz] = True
    return mask


def inside_corners(spec: MaskSpec) -> Mask:
    """What is left when the corners are cropped: |k| < 1."""
    return radius(spec) < 1


def radius(spec: MaskSpec) -> NDArray[np.float64]:
    """|k|, counted from the calibration region: 0 inside it, 1 at the middle of the grid's edges."""
    distances = []
    for size, inner in zip(spec.grid, spec.calibration_region, strict=True):
        distance = np.maximum(abs(np.arange(size) - size / 2) - inner / 2, 0)
        distances.append(distance / distance.max())
    return np.hypot(distances[0][:, None], distances[1][None, :])
