"""FNO's architecture, open to any transform of the plane."""

from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, pad

from monarch_core import PlaneTransform
from pde.models.parts.coordinates import Coordinates
from pde.models.parts.pointwise import PointwiseNet, mix_points
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.spectral import SpectralMap, SpectralOperator
from pde.models.parts.transport import Transport


class PlainLayer(nn.Module):
    """y = S(W(A x)) + V x: modes mix their channels, points mix theirs."""

    def __init__(self, width: int, plane: PlaneTransform, batch_norm: bool) -> None:
        super().__init__()
        # As published: uniform on [0, 1), re and im, over in x out channels.
        self.spectral = SpectralMap(plane, torch.rand(plane.num_modes, width, width, 2) / width**2)
        self.pointwise = nn.Linear(width, width)
        self.norm = nn.BatchNorm2d(width) if batch_norm else None

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.spectral(x) + mix_points(self.pointwise, x)
        return y if self.norm is None else self.norm(y.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class PlainOperator(SpectralOperator):
    """Lift, layers with GELU between them, projection through 128 channels."""

    def __init__(
        self,
        in_channels: int,
        resolution: Resolution,
        width: int,
        depth: int,
        plane: Callable[[], PlaneTransform],
        batch_norm: bool = False,
        *,
        fields: int = 1,
        padding: Sequence[int] = (0, 0),
        coordinates: Coordinates | None = None,
        transport: Transport | None = None,
    ) -> None:
        super().__init__(in_channels, resolution, fields, coordinates, transport)
        self.padding = sides(padding)
        self.lift = nn.Linear(in_channels + self.coordinates.channels, width)
        self.layers = nn.ModuleList(PlainLayer(width, plane(), batch_norm) for _ in range(depth))
        self.project = PointwiseNet(width, 128, self.made_channels, "gelu")

    def made(self, frames: Tensor) -> Tensor:
        x = mix_points(self.lift, self.coordinates.beside(frames))
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

    def resampled(self, resolution: Resolution) -> Self:
        super().resampled(resolution)
        for part in self.spectral_parts():
            part.plane = part.plane.resampled(self.resolution)
        return self
