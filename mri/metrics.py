"""How good a reconstruction is: pSNR and SSIM on the volume of one echo."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri.ssim import ssim

Complex = NDArray[np.complex64]


@dataclass(frozen=True)
class Quality:
    """The scores of one volume."""

    psnr: float
    """Of the magnitude, in dB."""
    psnr_complex: float
    """Of the complex image: errors of phase count too."""
    ssim: float
    """Of the magnitude."""


def quality(image: Complex, target: Complex) -> Quality:
    """Score a volume (slices, ky, kz) against its target; the data range is max |target| over the volume."""
    data_range = float(max(np.abs(plane).max() for plane in target))
    magnitude = [np.abs(volume).astype(np.float32) for volume in (image, target)]
    return Quality(
        _psnr(image, target, data_range, magnitude=True),
        _psnr(image, target, data_range, magnitude=False),
        ssim(magnitude[0], magnitude[1], data_range),
    )


def psnr(image: Complex, target: Complex, magnitude: bool = True) -> float:
    """20 log10(max |target| / RMSE) over all voxels, the error that of the magnitude or of the complex image.

    >>> target = np.full((2, 3, 4), 2 + 0j, np.complex64)
    >>> round(psnr(target + 0.2j, target, magnitude=False), 3)
    20.0
    """
    return _psnr(image, target, float(np.abs(target).max()), magnitude)


def _psnr(image: Complex, target: Complex, data_range: float, magnitude: bool) -> float:
    # Plane by plane and in double precision: neither temporaries nor rounding grow with the volume.
    total = 0.0
    for one, other in zip(image, target, strict=True):
        error = np.abs(one) - np.abs(other) if magnitude else np.abs(one - other)
        total += float(np.square(error, dtype=np.float64).sum())
    return float(20 * np.log10(data_range / np.sqrt(total / target.size))) if total else float("inf")
