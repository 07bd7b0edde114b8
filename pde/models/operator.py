"""The two macro-architectures of the spectral operators, each open to any transform: plain and factorised."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from pde.models.plane import real_part_matrix
from pde.models.pointwise import PointwiseNet, linear_flops, with_coordinates
from pde.models.product import mix_channels
from pde.models.transform import Axis

MakePlane = Callable[[], Any]
MakeAxes = Callable[[], nn.ModuleList]


class SpectralOperator(nn.Module):
    """Lift, spectral layers, project: fields (batch, x, y, frame) to the next frame (batch, x, y, 1)."""

    resolution: int
    layers: nn.ModuleList

    def flops(self) -> int:
        """Real operations of one forward pass on one field."""
        spectral = sum(layer.spectral_flops() for layer in self.layers)  # type: ignore[operator]
        return int(spectral) + linear_flops(self, self.resolution**2)


class PlainLayer(nn.Module):
    """y = S(W(A x)) + V x: modes mix their channels, points mix theirs."""

    def __init__(self, width: int, modes: int, plane: Any, batch_norm: bool) -> None:
        super().__init__()
        self.width, self.modes, self.plane = width, modes, plane
        # As published: uniform on [0, 1), re and im, over in x out channels.
        self.weight = nn.Parameter(torch.rand(2 * modes * modes, width, width, 2) / width**2)
        self.pointwise = nn.Linear(width, width)
        self.norm = nn.BatchNorm2d(width) if batch_norm else None

    def forward(self, x: Tensor) -> Tensor:
        modes = mix_channels(self.plane.analyse(x), self.weight)
        y = self.plane.synthesise(modes) + self.pointwise(x)
        return y if self.norm is None else self.norm(y.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)

    def spectral_flops(self) -> int:
        mixing = 8 * 2 * self.modes**2 * self.width**2
        return mixing + self.plane.flops(self.width)


class PlainOperator(SpectralOperator):
    """FNO's architecture: lift, layers with GELU between them, projection through 128 channels."""

    def __init__(
        self,
        in_frames: int,
        resolution: int,
        width: int,
        modes: int,
        depth: int,
        plane: MakePlane,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        self.resolution = resolution
        self.lift = nn.Linear(in_frames + 2, width)
        self.layers = nn.ModuleList(PlainLayer(width, modes, plane(), batch_norm) for _ in range(depth))
        self.project = PointwiseNet(width, 128, 1, "gelu")

    def forward(self, frames: Tensor) -> Tensor:
        x = self.lift(with_coordinates(frames))
        for layer in self.layers[:-1]:
            x = gelu(layer(x))
        projected: Tensor = self.project(self.layers[-1](x))
        return projected

    def resampled(self, n: int) -> "PlainOperator":
        """Change to an n x n grid, in place."""
        self.resolution = n
        for layer in self.layers:
            assert isinstance(layer, PlainLayer)
            layer.plane = layer.plane.resampled(n)
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
        axis = self.axes[0]
        assert isinstance(axis, Axis)
        transforms = 2 * 2 * axis.n * 2 * self.modes * self.width
        mixing = 8 * self.modes * self.width**2
        return 2 * axis.n * (transforms + mixing)


class FactorisedOperator(SpectralOperator):
    """F-FNO's architecture; the projection is linear, through 128 channels."""

    def __init__(
        self,
        in_frames: int,
        resolution: int,
        width: int,
        modes: int,
        depth: int,
        expansion: int,
        axes: MakeAxes,
    ) -> None:
        super().__init__()
        self.resolution = resolution
        self.lift = nn.Linear(in_frames + 2, width)
        self.layers = nn.ModuleList(FactorisedLayer(width, modes, expansion, axes()) for _ in range(depth))
        self.project_first, self.project_second = nn.Linear(width, 128), nn.Linear(128, 1)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.lift(with_coordinates(frames))
        for layer in self.layers:
            x = layer(x)
        # Two linear maps with nothing between them: multiplied with each other first, x passes only one.
        first, second = self.project_first, self.project_second
        bias = linear(first.bias, second.weight, second.bias)
        return linear(x, second.weight @ first.weight, bias)

    def resampled(self, n: int) -> "FactorisedOperator":
        """Change to an n x n grid, in place."""
        self.resolution = n
        for layer in self.layers:
            assert isinstance(layer, FactorisedLayer)
            layer.axes = nn.ModuleList(axis.resampled(n) for axis in layer.axes)  # type: ignore[operator]
        return self
