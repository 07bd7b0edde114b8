"""What training minimises: errors of the complex image, of its magnitude, or minus the scores of the tables."""

from functools import lru_cache

import torch
from torch import Tensor

from data.scans.sense import Sense
from mri.config import Loss
from mri.ssim import K1, K2, RADIUS, SIGMA

FLOOR = 1e-6
"""Squared error, in units of the target's variance, below which less error is no longer worth anything."""


def penalty(loss: Loss, image: Tensor, target: Tensor, similarity: float = 10.0) -> Tensor:
    """The mean over slices (batch, ky, kz) of

    l1          |e| of the complex error e
    squared     |e|^2
    mixed       |e| + |e|^2
    magnitude   (|image| - |target|)^2
    quality     log of the mean of (|image| - |target|)^2 over the slice, which is minus its pSNR up to constants,
                plus `similarity` (1 - SSIM) of the slice. A weak echo counts as much as a strong one, and with
                10 a gain of 0.01 in SSIM as much as one of 0.43 dB.

    >>> image, target = torch.full((1, 12, 12), 3 + 4j), torch.full((1, 12, 12), 2 + 0j)
    >>> [round(float(penalty(loss, image, target)), 2) for loss in ("squared", "magnitude")]
    [17.0, 9.0]
    """
    if loss in ("magnitude", "quality"):
        squared = (image.abs() - target.abs()).square().mean((-2, -1))
        if loss == "magnitude":
            return squared.mean()
        return ((squared + FLOOR).log() + similarity * (1 - slice_ssim(image, target))).mean()
    error = image - target
    squared = torch.view_as_real(error).square().sum(-1).mean()
    if loss == "squared":
        return squared
    return error.abs().mean() + (squared if loss == "mixed" else 0.0)


def slice_ssim(image: Tensor, target: Tensor) -> Tensor:
    """The structural similarity of the magnitudes of slices (batch, ky, kz): one number per slice, differentiable.

    As `mri.ssim.ssim` of a volume of one slice, whose data range is the slice's own max |target|.
    """
    x, y = image.abs(), target.abs()
    data_range = y.amax((-2, -1), keepdim=True).clamp_min(FLOOR)
    mean_x, mean_y, mean_squares, mean_product = _windowed(torch.stack((x, y, x * x + y * y, x * y)))
    squares = mean_x**2 + mean_y**2
    variances, covariance = mean_squares - squares, mean_product - mean_x * mean_y
    c1, c2 = (K1 * data_range) ** 2, (K2 * data_range) ** 2
    similarity = (2 * mean_x * mean_y + c1) * (2 * covariance + c2) / ((squares + c1) * (variances + c2))
    return similarity.mean((-2, -1))


def _windowed(field: Tensor) -> Tensor:
    """Gaussian means, only where the window lies inside the slice.

    By matrices, most of whose entries are zero: on a CPU still many times faster than a convolution of one channel.
    """
    height, width = field.shape[-2:]
    down, across = (_window(length, field.dtype, field.device) for length in (height, width))
    return down @ (field @ across.mT)


@lru_cache(maxsize=16)
def _window(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The matrix (length - 10, length) whose rows are Gaussian windows of 11 samples."""
    with torch.inference_mode(False):  # it is kept, and training may need it after a validation
        inside = torch.arange(length - 2 * RADIUS, device=device)[:, None]
        distance = (torch.arange(length, device=device) - inside - RADIUS).to(dtype)
        window = torch.exp(-0.5 * (distance / SIGMA) ** 2).where(distance.abs() <= RADIUS, 0.0)
        return window / window.sum(1, keepdim=True)


def misfit(image: Tensor, kspace: Tensor, maps: Tensor, weights: Tensor) -> Tensor:
    """How far what the coils would measure of an image is from what they measured: for each slice

        sum w |A x - y|^2 / sum w |y|^2,

    with image (batch, ky, kz), k-space and maps (batch, coils, ky, kz) and weights w (batch, ky, kz), 0 where nothing
    is compared.
    """
    error, size = (
        (weights[:, None, ..., None] * torch.view_as_real(each).square()).sum((1, 2, 3, 4))
        for each in (Sense(maps)(image) - kspace, kspace)
    )
    return error / size.clamp_min(torch.finfo(size.dtype).tiny)
