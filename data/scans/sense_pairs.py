"""The SENSE operator in real arithmetic, for runtimes without complex numbers and without an FFT.

Complex numbers are pairs (re, im) on a last axis of 2: k-space and maps (batch, coils, ky, kz, 2), images
(batch, ky, kz, 2). Masks are real, (ky, kz) or (batch, ky, kz). The conventions are those of `data.scans.sense`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from monarch_core import LinearOperator, dft2, in_pairs


class PairSense(nn.Module):
    """Makes `Measurement`s of one plane; holds its Fourier transform, which is a product of Monarch matrices.

    >>> from data.scans.sense import Sense
    >>> maps, image = torch.randn(2, 3, 8, 7, dtype=torch.complex64), torch.randn(2, 8, 7, dtype=torch.complex64)
    >>> measured = PairSense((8, 7))(torch.view_as_real(maps))(torch.view_as_real(image))
    >>> torch.allclose(measured, torch.view_as_real(Sense(maps)(image)), atol=1e-5)
    True
    """

    def __init__(self, plane: tuple[int, int]) -> None:
        super().__init__()
        exact = dft2(plane, inverse=True, norm="ortho", centered=True, pad=True, dtype=torch.complex128)
        self.to_image = in_pairs(exact).float().requires_grad_(False)

    def forward(self, maps: Tensor, mask: Tensor | None = None) -> "Measurement":
        return Measurement(self.to_image, maps, mask)


@dataclass(frozen=True)
class Measurement:
    """A x = M F (S_c x), and its adjoint; `to_image` is the inverse, and adjoint, of F."""

    to_image: LinearOperator
    maps: Tensor
    mask: Tensor | None = None

    def __call__(self, image: Tensor) -> Tensor:
        return self._sampled(self.to_image.adjoint(times(self.maps, image.unsqueeze(-4))))

    def adjoint(self, kspace: Tensor) -> Tensor:
        return combine(self.to_image(self._sampled(kspace)), self.maps)

    def _sampled(self, kspace: Tensor) -> Tensor:
        return kspace if self.mask is None else sample(kspace, self.mask)


def sample(kspace: Tensor, mask: Tensor) -> Tensor:
    """Keep what the mask sampled, or weight it."""
    return kspace * mask.unsqueeze(-3).unsqueeze(-1)


def combine(coil_images: Tensor, maps: Tensor) -> Tensor:
    """The coil sum of SENSE, sum_c conj(S_c) x_c."""
    return times(maps * maps.new_tensor((1.0, -1.0)), coil_images).sum(-4)


def times(a: Tensor, b: Tensor) -> Tensor:
    """The entrywise product of pairs.

    >>> times(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))  # (1 + 2i)(3 + 4i)
    tensor([-5., 10.])
    """
    (a_re, a_im), (b_re, b_im) = a.unbind(-1), b.unbind(-1)
    return torch.stack((a_re * b_re - a_im * b_im, a_re * b_im + a_im * b_re), -1)
