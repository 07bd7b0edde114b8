"""The truncated transform of a plane: a field (batch, x, y, channel) to modes (mode, channel, batch), and back."""

import torch
from torch import Tensor, nn

from pde.models.product import complex_product
from pde.models.transform import Axis


class Plane(nn.Module):
    """Separable: one matrix for all rows, one for all columns (per group of channels).

    The modes are numbered k * 2m + l for frequency k along y and the l-th kept frequency along x.
    """

    def __init__(self, n: int, modes: int) -> None:
        super().__init__()
        self.x, self.y = Axis(n, modes, signed=True), Axis(n, modes, signed=False)

    @classmethod
    def of(cls, x: Axis, y: Axis) -> "Plane":
        """The plane of two given axes: x keeps frequencies of both signs, y, which comes first, of one."""
        plane = cls(y.n, y.modes)
        plane.x, plane.y = x, y
        return plane

    def analyse(self, field: Tensor) -> Tensor:
        """Forward, rows first."""
        batch, n, _, channels = field.shape
        groups, m = self.y.groups, self.y.modes
        lines = field.permute(3, 0, 1, 2).reshape(groups, -1, n)
        z = torch.bmm(lines, self.y.matrices()[0].flatten(2))  # re and im of m modes side by side
        z = torch.view_as_complex(z.view(channels * batch, n, m, 2)).mT.reshape(groups, -1, n)
        f = complex_product(z, torch.view_as_complex(self.x.matrices()[0]))
        return f.view(channels, batch, -1).permute(2, 0, 1).contiguous()

    def synthesise(self, modes: Tensor) -> Tensor:
        """Back, columns first."""
        _, channels, batch = modes.shape
        groups, m, n = self.y.groups, self.y.modes, self.y.n
        f = modes.permute(1, 2, 0).reshape(groups, -1, 2 * m)
        g = complex_product(f, torch.view_as_complex(self.x.matrices()[1]))
        g = g.view(channels * batch, m, n).mT.contiguous()
        lines = torch.bmm(torch.view_as_real(g).view(groups, -1, 2 * m), real_part_matrix(self.y))
        return lines.view(channels, batch, n, n).permute(1, 2, 3, 0)

    def flops(self, channels: int) -> int:
        """Real operations of both directions, for one field."""
        n, m = self.y.n, self.y.modes
        return 2 * channels * (2 * n * n * 2 * m + 8 * m * n * 2 * m)

    def resampled(self, n: int) -> "Plane":
        """The same transform on an n x n grid."""
        return Plane.of(self.x.resampled(n), self.y.resampled(n))


def real_part_matrix(axis: Axis) -> Tensor:
    """The way back as a real matrix (groups, 2 kept, n) that multiplies (re, im) side by side: Re(z S)."""
    back = axis.matrices()[1]
    return torch.stack((back[..., 0], -back[..., 1]), dim=2).flatten(1, 2)
