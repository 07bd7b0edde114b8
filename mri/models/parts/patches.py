"""Overlapping patches of an image, each through one matrix."""

import torch
from torch import Tensor
from torch.nn.functional import fold, pad, unfold

from monarch_core import LinearOperator


class PatchTransform(LinearOperator):
    """W x: the coefficients of every patch of an image (ky, kz), as (coefficients, patches); W^T is the adjoint.

    Arguments:
        plane: size of the image, any.
        matrix: (coefficients, patch * patch), applied to the points of a patch in row-major order.
        stride: distance between neighbouring patches, a divisor of the patch's side.
        offset: how far the patches are moved along each axis, from 0 to stride - 1.

    Patches hang over the edges, with zeros there, so that each point lies in (patch / stride)^2 of them; dividing
    by patch / stride makes W^T W the identity if the matrix is orthonormal.

    >>> W = PatchTransform((9, 6), torch.eye(16), stride=2, offset=(1, 0))
    >>> x = torch.randn(3, 9, 6)
    >>> torch.allclose(W.adjoint(W(x)), x, atol=1e-6)
    True
    """

    def __init__(self, plane: tuple[int, int], matrix: Tensor, stride: int, offset: tuple[int, int]) -> None:
        super().__init__()
        self.patch, self.stride = round(matrix.shape[1] ** 0.5), stride
        self.matrix = matrix * (stride / self.patch)
        before = [self.patch - stride + moved for moved in offset]
        counts = [-(-(n + first) // stride) for n, first in zip(plane, before, strict=True)]
        self.padded = tuple((count - 1) * stride + self.patch for count in counts)
        (top, left), (ky, kz) = before, plane
        self.padding = [left, self.padded[1] - left - kz, top, self.padded[0] - top - ky]
        self.in_shape = plane
        self.out_shape = (len(matrix), counts[0] * counts[1])

    def multiply(self, x: Tensor) -> Tensor:
        images = pad(x.reshape(-1, 1, *self.in_shape), self.padding)
        return (self.matrix @ unfold(images, self.patch, stride=self.stride)).view(
            *x.shape[:-2], *self.out_shape
        )

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        patches = self.matrix.mT @ y.reshape(-1, *self.out_shape)
        images = fold(patches, self.padded, self.patch, stride=self.stride)
        return pad(images, [-width for width in self.padding]).view(*y.shape[:-2], *self.in_shape)

    @property
    def dtype(self) -> torch.dtype:
        return self.matrix.dtype

    def flops(self, batch: int = 1) -> int:
        return 2 * batch * self.matrix.numel() * self.out_shape[1]
