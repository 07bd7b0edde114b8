"""The truncated transform of a plane: a field (batch, x, y, channel) to modes (mode, channel, batch), and back."""

import torch
from torch import Tensor, nn

from pde.models.product import complex_product
from pde.models.resolution import Resolution, sides
from pde.models.transform import Axis, Start


class Plane(nn.Module):
    """Separable: one matrix for all rows, one for all columns (per group of channels).

    The modes are numbered k * 2m + l for frequency k along y and the l-th kept frequency along x. Fields whose
    channels are the slowest axis in memory pass without a copy.
    """

    def __init__(self, resolution: Resolution, modes: int, *, start: Start = "dft") -> None:
        super().__init__()
        rows, columns = sides(resolution)
        self.x = Axis(rows, modes, signed=True, start=start)
        self.y = Axis(columns, modes, signed=False, start=start)

    @classmethod
    def of(cls, x: Axis, y: Axis) -> "Plane":
        """The plane of two given axes: x keeps frequencies of both signs, y, which comes first, of one."""
        plane = cls((x.n, y.n), y.modes)
        plane.x, plane.y = x, y
        return plane

    @property
    def channel_matrices(self) -> int:
        """Modes, each of which mixes its channels by a matrix of its own."""
        return 2 * self.y.modes**2

    def analyse(self, field: Tensor) -> Tensor:
        """Forward, rows first."""
        batch, rows, columns, channels = field.shape
        groups, m = self.y.groups, self.y.modes
        lines = field.permute(3, 0, 1, 2).reshape(groups, -1, columns)
        z = torch.bmm(lines, self.y.matrices()[0].flatten(2))  # re and im of m modes side by side
        z = torch.view_as_complex(z.view(channels * batch, rows, m, 2)).mT.reshape(groups, -1, rows)
        f = complex_product(z, torch.view_as_complex(self.x.matrices()[0]))
        return f.view(channels, batch, -1).permute(2, 0, 1).contiguous()

    def synthesise(self, modes: Tensor) -> Tensor:
        """Back, columns first."""
        _, channels, batch = modes.shape
        groups, m, rows, columns = self.y.groups, self.y.modes, self.x.out, self.y.out
        f = modes.permute(1, 2, 0).reshape(groups, -1, 2 * m)
        g = complex_product(f, torch.view_as_complex(self.x.matrices()[1]))
        g = g.view(channels * batch, m, rows).mT.contiguous()
        lines = torch.bmm(torch.view_as_real(g).view(groups, -1, 2 * m), real_part_matrix(self.y))
        return lines.view(channels, batch, rows, columns).permute(1, 2, 3, 0)

    def flops(self, channels: int) -> int:
        """Real operations of both directions and the mixing, for one field."""
        return plane_flops((self.x.n, self.y.n), self.y.modes, channels)

    def resampled(self, resolution: Resolution, out: Resolution | None = None) -> "Plane":
        """The same transform on another grid, and back to the grid `out`."""
        (rows, columns), (below, beside) = sides(resolution), sides(resolution if out is None else out)
        return Plane.of(self.x.resampled(rows, below), self.y.resampled(columns, beside))


def plane_flops(resolution: Resolution, modes: int, channels: int) -> int:
    """Real operations of a layer's transforms, both directions, and of the mixing of its 2m x m modes."""
    return 2 * channels * one_way_flops(resolution, modes) + mixing_flops(modes, channels, channels)


def one_way_flops(resolution: Resolution, modes: int) -> int:
    """Real operations of the transform of one channel."""
    rows, columns = sides(resolution)
    along_rows = 2 * rows * columns * 2 * modes
    along_columns = 8 * modes * rows * 2 * modes
    return along_rows + along_columns


def mixing_flops(modes: int, channels: int, out: int) -> int:
    """Real operations of the mixing of 2m x m modes."""
    return 8 * 2 * modes**2 * channels * out


def real_part_matrix(axis: Axis) -> Tensor:
    """The way back as a real matrix (groups, 2 kept, n) that multiplies (re, im) side by side: Re(z S)."""
    back = axis.matrices()[1]
    return torch.stack((back[..., 0], -back[..., 1]), dim=2).flatten(1, 2)
