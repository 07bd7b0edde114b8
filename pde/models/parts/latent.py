"""The latent operator: few modes need few points, so its layers work on a coarse grid of their own."""

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from monarch_core import PlaneTransform
from monarch_core.transforms.plane import shear
from pde.models.parts.cells import Cells
from pde.models.parts.coordinates import Coordinates
from pde.models.parts.pointwise import gate, linear_flops, mix_points, split_channels
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.spectral import SpectralMap, SpectralOperator
from pde.models.parts.transport import Transport

MakePlane = Callable[[], PlaneTransform]

HEAD = 16
"""Channels that return to the fine grid, for each field; one half of them gates the other."""


def small_map(channels: int, out: int, plane: PlaneTransform) -> SpectralMap:
    """A spectral map that begins at a twentieth of what would keep the variance.

    Modes that the data does not call for stay small, and the operator overfits less. As large as the variance asks, it
    fits sooner and forecasts worse.
    """
    spread = 0.05 * (2 * channels) ** -0.5
    return SpectralMap(plane, spread * torch.randn(plane.num_modes, out, channels, 2))


class LatentLayer(nn.Module):
    """y = x + P gelu(S(W(A x)) + V x), on the coarse grid."""

    def __init__(self, width: int, plane: PlaneTransform) -> None:
        super().__init__()
        self.spectral = small_map(width, width, plane)
        self.pointwise, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + mix_points(self.out, gelu(self.spectral(x) + mix_points(self.pointwise, x)))


class LatentOperator(SpectralOperator):
    """An operator that leaves the fine grid at its first transform and returns to it at its last.

        x_0     = E frames + lift(coordinates, cells)          E: modes of the fine grid, points of the coarse one
        x_{i+1} = x_i + P_i gelu(F_i x_i + V_i x_i)            F: the coarse grid
        y       = project(glu(D x + skip(frames, coordinates)))    D: back to the fine grid

    Where fields are carried, D gives the velocities too, and the skip sees the fields where they have been carried to.
    E, F and D are truncated transform, channel matrices, way back. A coarse grid carries the kept modes as well as the
    fine one, for a fraction of the work. Of the rest of the field the layers see nothing unless `cells` shows them what
    lies within each coarse cell; the fine grid is met again at the end, by the points' own values.
    """

    def __init__(
        self,
        in_channels: int,
        resolution: Resolution,
        width: int,
        depth: int,
        latent: Resolution,
        inward: MakePlane,
        inner: MakePlane,
        outward: MakePlane,
        *,
        fields: int = 1,
        cells: bool = False,
        coordinates: Coordinates | None = None,
        transport: Transport | None = None,
    ) -> None:
        """The transforms are those of E, of each layer and of D."""
        super().__init__(in_channels, resolution, fields, coordinates, transport)
        self.latent = sides(latent)
        where = self.coordinates.channels
        self.cells = Cells(resolution, latent, self.coordinates.geometry.bounded) if cells else None
        within = 0 if self.cells is None else in_channels * self.cells.per_field
        self.lift = nn.Linear(where + within, width)
        self.encoder = small_map(in_channels, width, inward())
        self.shear = shear(self.latent) if self.encoder.plane.shear[0] else None
        self.layers = nn.ModuleList(LatentLayer(width, inner()) for _ in range(depth))
        self.head = HEAD * fields
        self.decoder = small_map(width, self.head + self.made_channels - fields, outward())
        self.skip = nn.Linear(in_channels + where, self.head)
        self.project = nn.Linear(self.head // 2, fields)

    def step(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        last, frames = frames[..., -self.fields :], self.seen(frames)
        x = self.encoder(frames)
        x = x + mix_points(self.lift, self._coarse_channels(frames))
        for layer in self.layers:
            x = layer(x)
        decoded = self.decoder(x)
        if self.transport is not None:
            decoded, velocities = split_channels(decoded, self.head)
            last = self.transport(last, velocities)
        seen = self.coordinates.beside(frames[..., : -self.fields], self.seen(last))
        x = decoded + mix_points(self.skip, seen)
        return last, self.as_fine(mix_points(self.project, gate(x)), last)

    def _coarse_channels(self, frames: Tensor) -> Tensor:
        """Coordinates of the coarse grid and what lies in its cells, sheared where the layers are."""
        where = self.coordinates.on(*self.latent).to(frames).permute(2, 0, 1)
        if self.shear is not None:
            where = self.shear(where.flatten(1)).view(where.shape)
        if self.cells is None:
            return where.permute(1, 2, 0)[None]
        sheared = self.encoder.plane.analysis.shear
        if sheared is not None:
            flat = frames.permute(3, 0, 1, 2).flatten(2)
            frames = sheared(flat).unflatten(2, frames.shape[1:3]).permute(1, 2, 3, 0)
        within = self.cells(frames).permute(3, 0, 1, 2)
        beside = where[:, None].expand(-1, frames.shape[0], -1, -1)
        return torch.cat((beside, within)).permute(1, 2, 3, 0)

    def flops(self) -> int:
        points, coarse_points = (rows * columns for rows, columns in (self.resolution, self.latent))
        at_points = linear_flops(self.skip, points) + linear_flops(self.project, points)
        at_points += linear_flops(self.layers, coarse_points) + linear_flops(self.lift, coarse_points)
        if self.cells is not None:
            at_points += self.cells.flops(self.in_channels)
        carrying = 0 if self.transport is None else self.transport.flops()
        return at_points + carrying + sum(part.flops() for part in self.spectral_parts())

    def resampled(self, resolution: Resolution) -> Self:
        """Change to another fine grid, in place; the coarse one stays."""
        super().resampled(resolution)
        self.encoder.plane = self.encoder.plane.resampled(self.resolution, self.latent)
        self.decoder.plane = self.decoder.plane.resampled(self.latent, self.resolution)
        if self.cells is not None:
            self.cells = Cells(self.resolution, self.latent, self.cells.bounded).to(self.lift.weight)
        return self


def coarse(resolution: tuple[int, int], modes: Resolution, sphere: bool = False) -> tuple[int, int]:
    """Half of the points of each side, and at least those that the modes need.

    The harmonics of a sphere have degrees up to 3 `modes` - 2 and need more latitudes than that.

    >>> coarse((64, 128), 12), coarse((32, 32), 12), coarse((64, 128), 12, sphere=True), coarse((64, 1), 12)
    ((32, 64), (24, 24), (36, 64), (32, 1))
    """
    (rows, columns), (along_x, along_y) = resolution, sides(modes)
    across = 1 if columns == 1 else max(columns // 2, 2 * along_y)
    return max(rows // 2, 2 * along_x + (along_y if sphere else 0)), across
