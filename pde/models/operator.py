"""The two macro-architectures of the spectral operators, each open to any transform: plain and factorised."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, pad

from pde.models.plane import real_part_matrix
from pde.models.pointwise import PointwiseNet, linear_flops, mix_points, with_coordinates
from pde.models.product import mix_channels
from pde.models.resolution import Resolution, sides
from pde.models.transform import Axis

MakePlane = Callable[[], Any]
MakeAxes = Callable[[], nn.ModuleList]


class SpectralOperator(nn.Module):
    """Lift, spectral layers, project: (batch, x, y, channel) to the fields of the next frame (batch, x, y, field)."""

    resolution: tuple[int, int]
    padding: tuple[int, int] = (0, 0)
    """Rows and columns of zeros that the layers see beyond the grid."""
    layers: nn.ModuleList

    def flops(self) -> int:
        """Real operations of one forward pass on one field."""
        (rows, columns), (below, beside) = self.resolution, self.padding
        spectral = sum(layer.spectral_flops() for layer in self.layers)  # type: ignore[operator]
        lifting = linear_flops(self, rows * columns) - linear_flops(self.layers, rows * columns)
        return int(spectral) + lifting + linear_flops(self.layers, (rows + below) * (columns + beside))


class PlainLayer(nn.Module):
    """y = S(W(A x)) + V x: modes mix their channels, points mix theirs."""

    def __init__(self, width: int, modes: int, plane: Any, batch_norm: bool) -> None:
        super().__init__()
        self.width, self.modes, self.plane = width, modes, plane
        # As published: uniform on [0, 1), re and im, over in x out channels.
        self.weight = nn.Parameter(torch.rand(plane.channel_matrices, width, width, 2) / width**2)
        self.pointwise = nn.Linear(width, width)
        self.norm = nn.BatchNorm2d(width) if batch_norm else None

    def forward(self, x: Tensor) -> Tensor:
        modes = mix_channels(self.plane.analyse(x), self.weight)
        y: Tensor = self.plane.synthesise(modes) + mix_points(self.pointwise, x)
        return y if self.norm is None else self.norm(y.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)

    def spectral_flops(self) -> int:
        flops: int = self.plane.flops(self.width)
        return flops


class PlainOperator(SpectralOperator):
    """FNO's architecture: lift, layers with GELU between them, projection through 128 channels."""

    def __init__(
        self,
        in_channels: int,
        resolution: Resolution,
        width: int,
        modes: int,
        depth: int,
        plane: MakePlane,
        batch_norm: bool = False,
        *,
        fields: int = 1,
        padding: Sequence[int] = (0, 0),
    ) -> None:
        super().__init__()
        self.resolution, self.padding = sides(resolution), sides(padding)
        self.lift = nn.Linear(in_channels + 2, width)
        self.layers = nn.ModuleList(PlainLayer(width, modes, plane(), batch_norm) for _ in range(depth))
        self.project = PointwiseNet(width, 128, fields, "gelu")

    def forward(self, frames: Tensor) -> Tensor:
        x = mix_points(self.lift, with_coordinates(frames))
        if any(self.padding):
            below, beside = self.padding
            x = pad(x, (0, 0, 0, beside, 0, below))
        for layer in self.layers[:-1]:
            x = gelu(layer(x))
        x = self.layers[-1](x)
        if any(self.padding):
            rows, columns = self.resolution
            x = x[:, :rows, :columns]
        projected: Tensor = self.project(x)
        return projected

    def resampled(self, resolution: Resolution) -> "PlainOperator":
        """Change to another grid, in place."""
        self.resolution = sides(resolution)
        for layer in self.layers:
            assert isinstance(layer, PlainLayer)
            layer.plane = layer.plane.resampled(resolution)
        return self


class FactorisedLayer(nn.Module):
    """y = x + F(sum over axes of S_a(W_a(A_a x))): each axis by itself, and the residual after the feed-forward."""

    def __init__(self, width: int, modes: int, expansion: int, axes: nn.ModuleList) -> None:
        super().__init__()
        self.width, self.modes, self.axes = width, modes, axes
        # Xavier's normal numbers, as published: variance 2 / (fan in + fan out) per real number.
        std = (2.0 / (2 * width * modes * 2)) ** 0.5
        self.weight = nn.Parameter(std * torch.randn(2, modes, width, width, 2))
        self.feed_forward = PointwiseNet(width, expansion * width, width, "relu")

    def forward(self, x: Tensor) -> Tensor:
        along_x = self._along(x.permute(3, 0, 2, 1), 0).permute(1, 3, 2, 0)
        along_y = self._along(x.permute(3, 0, 1, 2), 1).permute(1, 2, 3, 0)
        y: Tensor = x + self.feed_forward(along_x + along_y)
        return y

    def _along(self, x: Tensor, which: int) -> Tensor:
        """The spectral map of x (channel, batch, line, point) along its last axis."""
        axis = self.axes[which]
        assert isinstance(axis, Axis)
        channels, batch, lines, n = x.shape
        z = torch.bmm(x.reshape(axis.groups, -1, n), axis.matrices()[0].flatten(2))
        z = torch.view_as_complex(z.view(channels, batch * lines, self.modes, 2)).permute(2, 0, 1)
        z = mix_channels(z.contiguous(), self.weight[which]).permute(1, 2, 0).contiguous()
        y = torch.bmm(torch.view_as_real(z).view(axis.groups, -1, 2 * self.modes), real_part_matrix(axis))
        return y.view(channels, batch, lines, n)

    def spectral_flops(self) -> int:
        x, y = self.axes
        assert isinstance(x, Axis)
        assert isinstance(y, Axis)
        transforms = 2 * 2 * 2 * self.modes * self.width
        mixing = 8 * self.modes * self.width**2
        return 2 * transforms * x.n * y.n + mixing * (x.n + y.n)


class FactorisedOperator(SpectralOperator):
    """F-FNO's architecture; the projection is linear, through 128 channels."""

    def __init__(
        self,
        in_channels: int,
        resolution: Resolution,
        width: int,
        modes: int,
        depth: int,
        expansion: int,
        axes: MakeAxes,
        *,
        fields: int = 1,
    ) -> None:
        super().__init__()
        self.resolution = sides(resolution)
        self.lift = nn.Linear(in_channels + 2, width)
        self.layers = nn.ModuleList(FactorisedLayer(width, modes, expansion, axes()) for _ in range(depth))
        self.project_first, self.project_second = nn.Linear(width, 128), nn.Linear(128, fields)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.lift(with_coordinates(frames))
        for layer in self.layers:
            x = layer(x)
        # Two linear maps with nothing between them: multiplied with each other first, x passes only one.
        first, second = self.project_first, self.project_second
        bias = linear(first.bias, second.weight, second.bias)
        return linear(x, second.weight @ first.weight, bias)

    def resampled(self, resolution: Resolution) -> "FactorisedOperator":
        """Change to another grid, in place."""
        self.resolution = sides(resolution)
        for layer in self.layers:
            assert isinstance(layer, FactorisedLayer)
            axes = zip(layer.axes, self.resolution, strict=True)
            layer.axes = nn.ModuleList(axis.resampled(n) for axis, n in axes)  # type: ignore[operator]
        return self
