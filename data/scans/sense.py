"""The SENSE operator, and the one convention for Fourier transforms of the MRI part.

Image space and k-space are both *centred*: along an axis of length n, position and frequency zero are at
index n // 2. The transform is *orthonormal*, so its inverse is its adjoint:

    (F x)[k] = 1/sqrt(n) sum_j x[j] exp(-2 pi i (j - n//2) (k - n//2) / n)        along each of two axes.

This is sigpy's `fft` and BART's `fft -u`. With coil sensitivities S_c and a sampling mask M, the measurement is

    forward:  y_c = M F (S_c x)           adjoint:  x = sum_c conj(S_c) F^H (M y_c).

Zero-filled SENSE is the adjoint itself; it does not divide by sum_c |S_c|^2.

No transform here shifts anything. With h = n // 2, along each axis,

    (F x)[k] = after[k] FFT(before x)[k],  before[j] = exp(2 pi i h j / n),  after[k] = exp(2 pi i h (k - h) / n),

which are alternating signs if n is even.

Tensors end in (coils, ky, kz) or (ky, kz); axes in front are batch axes. A mask is real or bool, (ky, kz) or
(batch, ky, kz), and is the same for every coil.
"""

from functools import lru_cache
from math import log2, prod

import torch
from torch import Tensor
from torch.fft import fft, fft2, fftshift, ifft, ifft2, ifftshift

from monarch_core import LinearOperator


def fft2c(image: Tensor) -> Tensor:
    """Image to k-space: the centred orthonormal 2-D DFT over the last two axes.

    >>> impulse = torch.zeros(4, 6, dtype=torch.complex64)
    >>> impulse[2, 3] = 1
    >>> torch.allclose(fft2c(impulse), torch.full((4, 6), 24**-0.5, dtype=torch.complex64))
    True
    """
    before, after = _phases_for(image)
    return fft2(image * before, norm="ortho") * after


def ifft2c(kspace: Tensor) -> Tensor:
    """K-space to image: the inverse, and adjoint, of `fft2c`."""
    before, after = _phases_for(kspace)
    return ifft2(kspace * after.conj(), norm="ortho") * before.conj()


def fftc(image: Tensor, dim: int) -> Tensor:
    """The centred orthonormal DFT along one axis."""
    return fftshift(fft(ifftshift(image, dim=dim), dim=dim, norm="ortho"), dim=dim)


def ifftc(kspace: Tensor, dim: int) -> Tensor:
    """The inverse, and adjoint, of `fftc`: what brings the readout of a 3-D scan into image space."""
    return fftshift(ifft(ifftshift(kspace, dim=dim), dim=dim, norm="ortho"), dim=dim)


class Sense(LinearOperator):
    """What coils with sensitivities S_c measure of an image where the mask M samples: A x = M F (S_c x).

    Maps are (coils, ky, kz); with axes in front, (batch, coils, ky, kz), A maps a batch of images, each with maps
    of its own, to a batch of k-spaces. The mask is bool, or real weights, and None samples everything. A gradient
    step of a reconstruction reads as algebra:

    >>> maps, mask = torch.randn(2, 3, 8, 6, dtype=torch.complex64), torch.rand(2, 8, 6) < 0.5
    >>> A = Sense(maps, mask)
    >>> x, y = torch.zeros(2, 8, 6, dtype=torch.complex64), torch.randn(2, 3, 8, 6, dtype=torch.complex64)
    >>> torch.allclose(x + A.H(y - A(x)), A.adjoint(y))
    True

    Of the phases in place of shifts, `before` multiplies one image instead of every coil's, `after` the mask.
    """

    maps: Tensor
    weights: Tensor
    """The mask times `after`, (..., 1, ky, kz)."""
    power: Tensor
    """The square of the mask, complex."""
    before: Tensor

    def __init__(self, maps: Tensor, mask: Tensor | None = None) -> None:
        super().__init__()
        self.in_shape = (*maps.shape[:-3], *maps.shape[-2:])
        self.out_shape = tuple(maps.shape)
        before, after = _phases(self.in_shape[-2:], maps.dtype, maps.device)
        self.register_buffer("maps", maps, persistent=False)
        self.register_buffer("before", before, persistent=False)
        self.register_buffer("weights", after if mask is None else sample(after, mask), persistent=False)
        self.register_buffer("power", self.weights.abs().square().to(maps.dtype), persistent=False)

    def multiply(self, x: Tensor) -> Tensor:
        coil_images = self.maps * (self.before * x).unsqueeze(-3)
        return self.weights * fft2(coil_images, norm="ortho")

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        coil_images = ifft2(self.weights.conj() * y, norm="ortho")
        return self.before.conj() * combine(coil_images, self.maps)

    def normal(self, x: Tensor) -> Tensor:
        """A^H A x, cheaper than one after the other: `after` cancels."""
        x = self._expect(x, self.in_shape, "input")
        kspace = fft2(self.maps * (self.before * x).unsqueeze(-3), norm="ortho")
        coil_images = ifft2(kspace.mul_(self.power), norm="ortho")  # no gradient needs what it overwrites
        return self.before.conj() * combine(coil_images, self.maps)

    @property
    def dtype(self) -> torch.dtype:
        return self.maps.dtype

    def flops(self, batch: int = 1) -> int:
        """A transform, 5 n log2 n by convention, and a complex multiply-add for each coil."""
        points = prod(self.in_shape[-2:])
        return batch * round(self.out_features * (5 * log2(points) + 8))


@lru_cache
def _phases(plane: tuple[int, int], dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """`before` (ky, kz) and `after` (1, ky, kz) of `Sense`; real if both sides are even."""
    sides = []
    with torch.inference_mode(False):  # they are kept, and one day serve a training step
        for n in plane:
            index, half = torch.arange(n), n // 2
            turns = torch.stack([half * index, half * (index - half)]) % n  # of 1 / n each: exact
            phase = torch.polar(torch.ones(()).double(), turns.double() * (2 * torch.pi / n))
            sides.append(phase.real.round() if n % 2 == 0 else phase)
        both = sides[0][:, :, None] * sides[1][:, None, :]
        before, after = both.to(device, dtype if both.is_complex() else dtype.to_real())
    return before, after[None]


def _phases_for(plane: Tensor) -> tuple[Tensor, Tensor]:
    """`before` and `after`, (ky, kz) each, for the last two axes of a tensor."""
    before, after = _phases((plane.shape[-2], plane.shape[-1]), plane.dtype.to_complex(), plane.device)
    return before, after[0]


def combine(coil_images: Tensor, maps: Tensor) -> Tensor:
    """The coil sum of SENSE, sum_c conj(S_c) x_c; coil by coil, which writes no product of all coils to memory."""
    first, *others = zip(maps.conj().unbind(-3), coil_images.unbind(-3), strict=True)
    total = torch.mul(*first)
    for map_, image in others:
        total = total.addcmul(map_, image)
    return total


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
