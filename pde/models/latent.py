"""The latent operator: few modes need few points, so its layers work on a coarse grid of their own."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, glu

from pde.models.grid import GridPlane
from pde.models.operator import SpectralOperator
from pde.models.plane import Plane, mixing_flops, one_way_flops, plane_flops
from pde.models.pointwise import linear_flops, mix_points, with_coordinates
from pde.models.product import mix_channels
from pde.models.resolution import Resolution, sides

MakeTransform = Callable[[Resolution, Resolution], Plane | GridPlane]
"""The transform from one grid, and the way back to another."""

HEAD = 16
"""Channels that return to the fine grid, for each field; one half of them gates the other."""


class SpectralMap(nn.Module):
    """S(W(A x)): from the grid of A to that of S, each mode with a channel matrix of its own."""

    def __init__(self, channels: int, out: int, plane: Plane | GridPlane) -> None:
        super().__init__()
        self.plane = plane
        # A twentieth of what would keep the variance: modes that the data does not call for stay small, and the
        # operator learns less by heart. As large as the variance asks, it fits sooner and forecasts worse.
        spread = 0.05 * (2 * channels) ** -0.5
        self.weight = nn.Parameter(spread * torch.randn(plane.channel_matrices, out, channels, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.plane.synthesise(mix_channels(self.plane.analyse(x), self.weight))


class LatentLayer(nn.Module):
    """y = x + P gelu(S(W(A x)) + V x), on the coarse grid."""

    def __init__(self, width: int, plane: Plane | GridPlane) -> None:
        super().__init__()
        self.spectral = SpectralMap(width, width, plane)
        self.pointwise, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + mix_points(self.out, gelu(self.spectral(x) + mix_points(self.pointwise, x)))


class LatentOperator(SpectralOperator):
    """An operator that leaves the fine grid at its first transform and returns to it at its last.

        x_0     = E frames + lift(coordinates)                 E: modes of the fine grid, points of the coarse one
        x_{i+1} = x_i + P_i gelu(F_i x_i + V_i x_i)            F: the coarse grid
        y       = project(glu(D x + skip(frames, coordinates)))    D: back to the fine grid

    E, F and D are truncated transform, channel matrices, way back. All of the field that the layers see is what the
    kept modes hold: a coarse grid carries that as well as the fine one, for a fraction of the work, and the fine
    scales of a forecast, which go wrong first, do not leak into the coarse ones. The fine grid is met
    again at the end, by the points' own values.
    """

    def __init__(
        self,
        in_channels: int,
        resolution: Resolution,
        width: int,
        modes: int,
        depth: int,
        latent: Resolution,
        plane: MakeTransform,
        *,
        shared: bool = False,
        layer_plane: MakeTransform | None = None,
        fields: int = 1,
    ) -> None:
        super().__init__()
        self.resolution, self.latent, self.modes = sides(resolution), sides(latent), modes
        inner = layer_plane or plane
        common = inner(self.latent, self.latent) if shared else None
        self.lift = nn.Linear(2, width)
        self.encoder = SpectralMap(in_channels, width, plane(self.resolution, self.latent))
        self.layers = nn.ModuleList(
            LatentLayer(width, common or inner(self.latent, self.latent)) for _ in range(depth)
        )
        self.head = HEAD * fields
        self.decoder = SpectralMap(width, self.head, plane(self.latent, self.resolution))
        self.skip = nn.Linear(in_channels + 2, self.head)
        self.project = nn.Linear(self.head // 2, fields)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.encoder(frames)
        x = x + mix_points(self.lift, with_coordinates(x[:1, ..., :0]))
        for layer in self.layers:
            x = layer(x)
        x = self.decoder(x) + mix_points(self.skip, with_coordinates(frames))
        return mix_points(self.project, glu(x))

    def flops(self) -> int:
        fine, points = self.resolution, self.resolution[0] * self.resolution[1]
        coarse_points, width = self.latent[0] * self.latent[1], self.lift.out_features
        channels = self.encoder.weight.shape[2]
        around = channels * one_way_flops(fine, self.modes) + width * one_way_flops(self.latent, self.modes)
        around += width * one_way_flops(self.latent, self.modes) + self.head * one_way_flops(fine, self.modes)
        around += mixing_flops(self.modes, channels, width) + mixing_flops(self.modes, width, self.head)
        inner = len(self.layers) * plane_flops(self.latent, self.modes, width)
        at_points = linear_flops(self.layers, coarse_points) + linear_flops(self.lift, coarse_points)
        return (
            around + inner + at_points + linear_flops(self.skip, points) + linear_flops(self.project, points)
        )

    def resampled(self, resolution: Resolution) -> "LatentOperator":
        """Change to another fine grid, in place; the coarse one stays."""
        self.resolution = sides(resolution)
        inward, outward = self.encoder.plane, self.decoder.plane
        assert isinstance(inward, Plane)
        assert isinstance(outward, Plane)
        self.encoder.plane = inward.resampled(resolution, self.latent)
        self.decoder.plane = outward.resampled(self.latent, resolution)
        return self


def coarse(resolution: tuple[int, int], modes: int, sphere: bool = False) -> tuple[int, int]:
    """Half of the points of each side, and at least those that the modes need.

    The harmonics of a sphere have degrees up to 3 `modes` - 2 and need more latitudes than that.

    >>> coarse((64, 128), 12), coarse((32, 32), 12), coarse((64, 128), 12, sphere=True)
    ((32, 64), (24, 24), (36, 64))
    """
    rows, columns = resolution
    return max(rows // 2, (3 if sphere else 2) * modes), max(columns // 2, 2 * modes)
