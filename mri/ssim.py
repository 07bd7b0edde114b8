"""Structural similarity of volumes, slab by slab, in bounded memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

from lab.errors import UserError

SIGMA = 1.5
RADIUS = 5
K1, K2 = 0.01, 0.03
SMALLEST = 2 * RADIUS + 1
"""Side of the window, and shortest side of a slice that can be scored."""
SLAB = 8
"""Planes of the result computed at once; each slab reads RADIUS more on either side."""


def ssim(image: NDArray[Any], target: NDArray[Any], data_range: float) -> float:
    """The mean structural similarity of the magnitudes of two volumes (slices, ky, kz), border of 5 voxels cropped.

        SSIM = (2 m_x m_y + C1) (2 s_xy + C2) / ((m_x^2 + m_y^2 + C1) (s_x^2 + s_y^2 + C2)),

    means and (co)variances under a Gaussian window of 11^3 voxels, sigma 1.5, C1 = (0.01 range)^2,
    C2 = (0.03 range)^2 (Wang et al. 2004; scikit-image with gaussian_weights and use_sample_covariance=False).
    A volume of fewer than 11 slices is scored slice by slice, with a window of 11^2 and no crop along slices.

    >>> volume = np.random.default_rng(0).random((12, 16, 16), dtype=np.float32)
    >>> round(ssim(volume, volume, 1.0), 6)
    1.0
    """
    if image.shape != target.shape or image.ndim != 3:
        raise ValueError(f"two volumes of one shape are needed, not {image.shape} and {target.shape}.")
    check_plane(image.shape[1:])
    halo = RADIUS if image.shape[0] > 2 * RADIUS else 0
    total, count = 0.0, 0
    for first in range(halo, image.shape[0] - halo, SLAB):
        last = min(first + SLAB, image.shape[0] - halo)
        rows = slice(first - halo, last + halo)
        x, y = (np.abs(volume[rows]).astype(np.float64) for volume in (image, target))
        values = _similarity(x, y, data_range, halo)
        total += values.sum()
        count += values.size
    return float(total / count)


def check_plane(plane: Sequence[int]) -> None:
    """Refuse slices (ky, kz) that are smaller than the window."""
    if min(plane) < SMALLEST:
        raise UserError(
            f"slices of at least {SMALLEST} x {SMALLEST} voxels are needed to train and to score, not "
            f"{plane[0]} x {plane[1]}; python -m mri.reconstruct takes smaller ones."
        )


def _similarity(
    x: NDArray[np.float64], y: NDArray[np.float64], data_range: float, halo: int
) -> NDArray[np.float64]:
    mean_x, mean_y = _windowed(x, halo), _windowed(y, halo)
    variances = _windowed(x * x, halo) - mean_x**2 + _windowed(y * y, halo) - mean_y**2
    covariance = _windowed(x * y, halo) - mean_x * mean_y
    c1, c2 = (K1 * data_range) ** 2, (K2 * data_range) ** 2
    result: NDArray[np.float64] = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    return result / ((mean_x**2 + mean_y**2 + c1) * (variances + c2))


def _windowed(field: NDArray[np.float64], halo: int) -> NDArray[np.float64]:
    """Gaussian means, only where the window lies inside the slab."""
    offsets = np.arange(-RADIUS, RADIUS + 1)
    window = np.exp(-0.5 * (offsets / SIGMA) ** 2)
    window /= window.sum()
    for axis in range(3):
        if axis == 0 and not halo:
            continue
        field = correlate1d(field, window, axis)
        inside = [slice(None)] * 3
        inside[axis] = slice(RADIUS, -RADIUS)
        field = field[tuple(inside)]
    return field
