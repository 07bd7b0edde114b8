"""Where a point lies, as channels beside the fields."""

from typing import Literal

import torch
from torch import Tensor

from data.fields.geometry import Box, Geometry, Sphere

Kind = Literal["plain", "geometry", "diagonal"]


class Coordinates:
    """Channels that tell a network where a point is.

    Kinds:
        plain: x and y from 0 to 1 (on a line x), the last point at 1, as published for FNO. On a periodic axis this has
            a seam, and a finer grid has other values at the same points.
        geometry: what fits the domain: sine and cosine of a periodic axis, the coordinate between walls, the
            three Cartesian coordinates of a point on a sphere.
        diagonal: sine and cosine of x + y, for a flow on the torus whose forcing depends on x + y alone; shifts along
            the other diagonal, which leave the flow a flow, leave them unchanged.
    """

    def __init__(self, kind: Kind = "plain", geometry: Geometry | None = None) -> None:
        self.kind, self.geometry = kind, Box() if geometry is None else geometry
        self._known: dict[tuple[int, int], Tensor] = {}

    @property
    def channels(self) -> int:
        """How many channels there are."""
        return self.on(2, 2).shape[-1]

    def on(self, rows: int, columns: int) -> Tensor:
        """The channels on a grid of this many points: (row, column, channel), float64."""
        # Tracing gives stand-ins, which must not outlive it. Gauss's latitudes solve an eigenvalue problem, which is no
        # part of a graph: those of the model's own grid are known before (see `pde.models.build`).
        if torch.compiler.is_compiling() and not (
            isinstance(self.geometry, Sphere) and (rows, columns) in self._known
        ):
            return self._made(rows, columns)
        if (rows, columns) not in self._known:
            with torch.inference_mode(False):  # a validation may come first, and training needs it later
                self._known[rows, columns] = self._made(rows, columns)
        return self._known[rows, columns]

    def beside(self, *fields: Tensor) -> Tensor:
        """Fields (batch, x, y, channel) of one grid as one, with these channels behind their own.

        In memory channels come first, as `mix_points` takes them: joined along the last axis, all is copied twice.
        """
        batch, rows, columns, _ = fields[0].shape
        where = self.on(rows, columns).to(fields[0])
        parts = (*fields, where.expand(batch, *where.shape))
        return torch.cat([part.permute(3, 0, 1, 2) for part in parts]).permute(1, 2, 3, 0)

    def _made(self, rows: int, columns: int) -> Tensor:
        if self.kind == "geometry":
            return self.geometry.features(rows, columns)
        if self.kind == "diagonal":
            x, y = Box().coordinates(rows, columns)
            phase = 2 * torch.pi * (x[:, None] + y)
            return torch.stack((phase.sin(), phase.cos()), -1)
        x, y = (torch.linspace(0, 1, n, dtype=torch.float64) for n in (rows, columns))
        return torch.stack(torch.meshgrid(x, y, indexing="ij"), -1)[..., : len(self.geometry.axes)]
