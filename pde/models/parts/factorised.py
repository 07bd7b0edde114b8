"""F-FNO's architecture, open to any transform of an axis."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Self, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from monarch_core import AxisTransform
from monarch_core.pairs import product
from pde.models.parts.coordinates import Coordinates
from pde.models.parts.pointwise import PointwiseNet
from pde.models.parts.resolution import Resolution
from pde.models.parts.spectral import SpectralOperator
from pde.models.parts.transport import Transport

Axes = Sequence[AxisTransform]
"""One transform for each axis that has more than one point: of x and y, or of the x of a line."""


def along_axes(make: Callable[[int, int], AxisTransform], resolution: tuple[int, int]) -> Axes:
    """The transforms `make(axis, points)` of the axes of a grid."""
    return [make(axis, points) for axis, points in enumerate(resolution) if points > 1]


class FactorisedLayer(nn.Module):
    """y = x + F(sum over axes of S_a(W_a(A_a x))): each axis by itself, and the residual after the feed-forward."""

    def __init__(self, width: int, modes: int, expansion: int, axes: Axes) -> None:
        super().__init__()
        self.axes = nn.ModuleList(axes)
        # Xavier's normal numbers, as published: variance 2 / (fan in + fan out) per real number.
        std = (2.0 / (2 * width * modes * 2)) ** 0.5
        self.weight = nn.Parameter(std * torch.randn(len(axes), modes, width, width, 2))
        self.feed_forward = PointwiseNet(width, expansion * width, width, "relu")

    def forward(self, x: Tensor) -> Tensor:
        along = self._along(x.permute(3, 0, 2, 1), 0).permute(1, 3, 2, 0)
        if len(self.axes) > 1:
            along = along + self._along(x.permute(3, 0, 1, 2), 1).permute(1, 2, 3, 0)
        y: Tensor = x + self.feed_forward(along)
        return y

    def _along(self, x: Tensor, which: int) -> Tensor:
        """The spectral map of x (channel, batch, line, point) along its last axis."""
        axis = cast(AxisTransform, self.axes[which])
        _, batch, lines, _ = x.shape
        return axis.synthesise(product(self.weight[which], axis.analyse(x)), (batch, lines))

    def flops(self) -> int:
        """Real operations of the transforms and the modes, on one field."""
        axes = cast(Axes, list(self.axes))
        points, width = prod(axis.n for axis in axes), self.weight.shape[2]
        return sum(axis.flops(width, lines=points // axis.n) for axis in axes)


class FactorisedOperator(SpectralOperator):
    """Lift, layers, and a projection that is linear, through 128 channels."""

    def __init__(
        self,
        in_channels: int,
        resolution: Resolution,
        width: int,
        modes: int,
        depth: int,
        expansion: int,
        axes: Callable[[], Axes],
        *,
        fields: int = 1,
        coordinates: Coordinates | None = None,
        transport: Transport | None = None,
    ) -> None:
        super().__init__(in_channels, resolution, fields, coordinates, transport)
        self.lift = nn.Linear(in_channels + self.coordinates.channels, width)
        self.layers = nn.ModuleList(FactorisedLayer(width, modes, expansion, axes()) for _ in range(depth))
        self.project_first, self.project_second = nn.Linear(width, 128), nn.Linear(128, self.made_channels)

    def made(self, frames: Tensor) -> Tensor:
        x = self.lift(self.coordinates.beside(frames))
        for layer in self.layers:
            x = layer(x)
        # Two linear maps with nothing between them: multiplied with each other first, x passes only one.
        first, second = self.project_first, self.project_second
        bias = linear(first.bias, second.weight, second.bias)
        return linear(x, second.weight @ first.weight, bias)

    def flops(self) -> int:
        return super().flops() + sum(cast(FactorisedLayer, layer).flops() for layer in self.layers)

    def resampled(self, resolution: Resolution) -> Self:
        super().resampled(resolution)
        for layer in cast(list[FactorisedLayer], list(self.layers)):
            points = [n for n in self.resolution if n > 1]
            axes = zip(cast(Axes, list(layer.axes)), points, strict=True)
            layer.axes = nn.ModuleList(axis.resampled(n) for axis, n in axes)
        return self
