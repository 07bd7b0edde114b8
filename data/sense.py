"""SENSE operators, and the one convention for Fourier transforms of the MRI part.

Image space and k-space are both *centred*: along an axis of length n, position and frequency zero are at
index n // 2. The transform is *orthonormal*, so its inverse is its adjoint:

    (F x)[k] = 1/sqrt(n) sum_j x[j] exp(-2 pi i (j - n//2) (k - n//2) / n)        along each of two axes.

This is sigpy's `fft` and BART's `fft -u`. With coil sensitivities S_c and a sampling mask M,

    forward:  y_c = M F (S_c x)           adjoint:  x = sum_c conj(S_c) F^H (M y_c).

Zero-filled SENSE is the adjoint itself; it does not divide by sum_c |S_c|^2.

Tensors end in (coils, ky, kz) or (ky, kz); axes in front are batch axes. A mask is real or bool, (ky, kz) or
(batch, ky, kz), and is the same for every coil.
"""

import torch
from torch import Tensor

PLANE = (-2, -1)


def fft2c(image: Tensor) -> Tensor:
    """Image to k-space: the centred orthonormal 2-D DFT over the last two axes.

    >>> impulse = torch.zeros(4, 6, dtype=torch.complex64)
    >>> impulse[2, 3] = 1
    >>> torch.allclose(fft2c(impulse), torch.full((4, 6), 24**-0.5, dtype=torch.complex64))
    True
    """
    shifted = torch.fft.ifftshift(image, dim=PLANE)
    kspace: Tensor = torch.fft.fftshift(torch.fft.fft2(shifted, norm="ortho"), dim=PLANE)
    return kspace


def ifft2c(kspace: Tensor) -> Tensor:
    """K-space to image: the inverse, and adjoint, of `fft2c`."""
    shifted = torch.fft.ifftshift(kspace, dim=PLANE)
    image: Tensor = torch.fft.fftshift(torch.fft.ifft2(shifted, norm="ortho"), dim=PLANE)
    return image


def forward(image: Tensor, maps: Tensor, mask: Tensor | None = None) -> Tensor:
    """What the coils measure of an image: (..., ky, kz) and maps (..., coils, ky, kz) to k-space."""
    return sample(fft2c(maps * image.unsqueeze(-3)), mask)


def adjoint(kspace: Tensor, maps: Tensor, mask: Tensor | None = None) -> Tensor:
    """Zero-filled SENSE: k-space (..., coils, ky, kz) and maps to an image (..., ky, kz)."""
    return combine(ifft2c(sample(kspace, mask)), maps)


def combine(coil_images: Tensor, maps: Tensor) -> Tensor:
    """The coil sum of SENSE, sum_c conj(S_c) x_c."""
    return (maps.conj() * coil_images).sum(-3)


def sample(kspace: Tensor, mask: Tensor | None) -> Tensor:
    """Keep what the mask sampled (or weight it, if the mask is real); None keeps everything."""
    return kspace if mask is None else kspace * mask.unsqueeze(-3)


def centre(inner: int, outer: int) -> slice:
    """Where an axis of length `inner` lies in one of length `outer`, zero frequency on zero frequency.

    Zero-padding from the acquired grid: `padded[..., centre(416, 512), centre(80, 160)] = acquired`.

    >>> centre(416, 512), centre(5, 8)
    (slice(48, 464, None), slice(2, 7, None))
    """
    if inner > outer:
        raise ValueError(f"an axis of length {inner} does not fit into one of length {outer}.")
    start = outer // 2 - inner // 2
    return slice(start, start + inner)
