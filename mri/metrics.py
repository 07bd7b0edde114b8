"""How good a reconstruction is: pSNR and SSIM on the volume of one echo."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mri.ssim import ssim

Complex = NDArray[np.complex64]


class Metric(NamedTuple):
    """A score of a volume (slices, ky, kz) against its target; higher is better."""

    title: str
    digits: int
    score: Callable[[Complex, Complex, float], float]
    """(image, target, data range), the data range being max |target| over the volume."""
    unit: str = ""

    def shown(self, value: float) -> str:
        """A value with its unit."""
        return f"{value:.{self.digits}f}{self.unit}"


def psnr(image: Complex, target: Complex, data_range: float, magnitude: bool = True) -> float:
    """20 log10(data range / RMSE) over all voxels, the error that of the magnitude or of the complex image.

    >>> target = np.full((2, 3, 4), 2 + 0j, np.complex64)
    >>> round(psnr(target + 0.2j, target, 2.0, magnitude=False), 3)
    20.0
    """
    # Plane by plane and in double precision: neither temporaries nor rounding grow with the volume.
    total = 0.0
    for one, other in zip(image, target, strict=True):
        error = np.abs(one) - np.abs(other) if magnitude else np.abs(one - other)
        total += float(np.square(error, dtype=np.float64).sum())
    return float(20 * np.log10(data_range / np.sqrt(total / target.size))) if total else float("inf")


METRICS: dict[str, Metric] = {
    "psnr": Metric("pSNR", 2, psnr, " dB"),
    "ssim": Metric("SSIM", 4, ssim),
    "psnr_complex": Metric("complex pSNR", 2, partial(psnr, magnitude=False), " dB"),
}
"""Every score, in the order of the tables: of the magnitude first, then of the complex image."""


def quality(image: Complex, target: Complex) -> dict[str, float]:
    """Every score of a volume (slices, ky, kz)."""
    data_range = float(max(np.abs(plane).max() for plane in target))
    return {name: metric.score(image, target, data_range) for name, metric in METRICS.items()}
