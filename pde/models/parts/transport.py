"""Transport: a field carried by velocities that a network gives.

Fine scales of a flow are carried by it rather than made anew in every step, and no truncated transform can move them.
Here a network gives two velocities at every point, one for each half of the step. They point to where a value comes
from, against the flow. Points are followed back along the characteristics, by the midpoint rule in each half, and the
field is sampled where they come from:

    h   = x + later(x + later(x) / 2)               back over the second half of the step
    x'  = h + earlier(h + earlier(h) / 2)           back over the first
    moved = (1 + K2) S (1 + K1) field,    S field (x) = field(x')

K1 and K2 are learned filters, convolutions that begin at zero; they mend what sampling and diffusion do to each
wavenumber. Diffusion acts all along the way: half before and half after it is right to second order in the step,
where all before it is right to first (Strang 1968). Where their transforms learn as well, filters may differ from place
to place along x. It assumes that something is carried, not which equation carries it.

On a torus the field may be carried on a finer grid than that of the velocities, which are smooth (`refinement`). The
filters there begin as those of the coarser grid, and learn what differs.
"""

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from data.fields.geometry import Box, Geometry, Sphere
from monarch_core import PlaneTransform
from monarch_core.transforms.starts import PerAxis
from pde.models.options import Filter, Parity
from pde.models.parts.constants import Constants
from pde.models.parts.refinement import Refinement, nearest
from pde.models.parts.splines import (
    MARGIN,
    Degree,
    around_torus,
    spline_around,
    spline_between_walls,
    spline_on_torus,
    spline_values,
)

REACH = 1 / 8
"""How far a velocity of 1 leads in half a step: a share of the box along that axis, or of the way from pole to pole."""
TINY = 1e-20
"""Keeps the root of a square differentiable at zero."""
HALF = (torch.bfloat16, torch.float16)
"""In half precision a number of points is a quarter of a point off: too little to say where a point lies."""


class Surface(ABC, Constants):
    """A grid on which points move: the positions of its points, what a displacement does, and values between them."""

    vectors: int
    """Components of a position."""
    neighbours: int = 16
    """Points that a value between points depends on."""

    @abstractmethod
    def points(self) -> Tensor:
        """The positions of the points, (x, y, component)."""

    @abstractmethod
    def vector(self, velocity: Tensor) -> Tensor:
        """Two numbers per point (batch, x, y, 2) as displacements of positions (batch, x, y, component)."""

    @abstractmethod
    def moved(self, position: Tensor, displacement: Tensor) -> Tensor:
        """Where a displacement leads from a position."""

    @abstractmethod
    def spline(self, field: Tensor) -> Tensor:
        """The coefficients of a spline through a field (batch, x, y, channel)."""

    @abstractmethod
    def values(self, spline: Tensor, position: Tensor) -> Tensor:
        """The values of a spline at positions (batch, x, y, component): (batch, x, y, channel)."""

    def coefficients(self, field: Tensor) -> Tensor:
        """The coefficients that `spline` gives, never in half precision."""
        device = field.device.type
        mixed = torch.is_autocast_enabled(device)
        with torch.autocast(device, enabled=False) if mixed else nullcontext():
            return self.spline(field.float() if field.dtype in HALF else field)

    def sample(self, field: Tensor, position: Tensor) -> Tensor:
        """A field (batch, x, y, channel) at positions (batch, x, y, component)."""
        return self.values(self.coefficients(field), position)

    def origins(self, velocities: Tensor) -> Tensor:
        """The positions from which each point is reached: velocities (batch, x, y, 4), of the earlier half first."""
        points = self.points()
        earlier, later = (self.vector(half) for half in velocities.split(2, dim=-1))
        halfway = self.moved(points, self.sample(later, self.moved(points, later / 2)))
        spline = self.coefficients(earlier)
        middle = self.moved(halfway, self.values(spline, halfway) / 2)
        return self.moved(halfway, self.values(spline, middle))


class Plane(Surface):
    """A box; positions are (row, column) in points. Periodic axes wrap around, at walls positions are clamped.

    `parity`: whether a field goes on beyond a wall as in a mirror (even) or with the opposite sign (odd).
    `degree`: that of the spline. `through`: how many points it has for a point of a periodic axis (two between walls);
    a series of waves gives the values there.
    """

    vectors = 2
    base: Tensor
    size: Tensor
    around: Tensor
    through: Tensor
    spline0: Tensor
    spline1: Tensor

    def __init__(
        self,
        resolution: tuple[int, int],
        geometry: Box,
        parity: Parity = "even",
        through: int = 2,
        degree: Degree = 3,
    ) -> None:
        super().__init__()
        self.resolution, self.walls = resolution, geometry.bounded
        self.degree, self.neighbours = degree, (degree + 1) ** 2
        rows, columns = (torch.arange(n, dtype=torch.float64) for n in resolution)
        self.constant("base", torch.stack(torch.meshgrid(rows, columns, indexing="ij"), -1))
        self.constant("size", torch.tensor(resolution, dtype=torch.float64))
        self.constant("around", torch.tensor([not wall for wall in self.walls], dtype=torch.float64))
        for axis, (n, wall) in enumerate(zip(resolution, self.walls, strict=True)):
            spline = spline_between_walls(n, parity, degree) if wall else spline_on_torus(n, through, degree)
            self.constant(f"spline{axis}", spline)
        self.constant("through", torch.tensor([2 if wall else through for wall in self.walls]).double())

    def points(self) -> Tensor:
        return self.base

    def vector(self, velocity: Tensor) -> Tensor:
        return velocity * (REACH * self.size).to(velocity.dtype)

    def moved(self, position: Tensor, displacement: Tensor) -> Tensor:
        return position.to(displacement.dtype) + displacement

    def spline(self, field: Tensor) -> Tensor:
        image = field.permute(0, 3, 1, 2)
        return self.spline0.to(image.dtype) @ image @ self.spline1.to(image.dtype).mT

    def values(self, spline: Tensor, position: Tensor) -> Tensor:
        size, around, through = (part.to(position.dtype) for part in (self.size, self.around, self.through))
        place = position - size * around * (position.detach() / size).floor()
        if any(self.walls):  # which are half a point beyond the first and the last point
            place = place.maximum((around - 0.5).clamp(max=0.0))
            place = place.minimum(size - 0.5 + around)
        # Between walls the spline's first point is the wall itself, half a point before.
        return spline_values(spline, through * place + (MARGIN + 1 - around), self.degree)


class Globe(Surface):
    """A sphere; positions are points of the unit sphere in space, displacements lead along great circles."""

    vectors = 3
    base: Tensor
    east: Tensor
    south: Tensor
    colatitudes: Tensor
    along: Tensor
    meridian: Tensor

    def __init__(self, resolution: tuple[int, int], geometry: Sphere) -> None:
        super().__init__()
        if resolution[1] % 2:
            raise ValueError(
                f"fields are carried across the poles to the other side, half a turn away: an even number of "
                f"longitudes is needed; there are {resolution[1]}."
            )
        self.resolution = resolution
        theta, phi = geometry.coordinates(*resolution)
        self.poles = int(
            geometry.latitudes == "equiangular"
        )  # rows that meridians share with their other side
        sin_phi, cos_phi = phi.sin().expand(resolution), phi.cos().expand(resolution)
        cos_theta = theta.cos()[:, None].expand(resolution)
        sin_theta = theta.sin()[:, None].expand(resolution)
        zero = torch.zeros(resolution, dtype=torch.float64)
        self.constant("base", torch.stack((sin_theta * cos_phi, sin_theta * sin_phi, cos_theta), -1))
        self.constant("east", torch.stack((-sin_phi, cos_phi, zero), -1))
        self.constant("south", torch.stack((cos_theta * cos_phi, cos_theta * sin_phi, -sin_theta), -1))
        self.constant("colatitudes", theta)
        self.constant("along", spline_around(resolution[1]))
        self.constant("meridian", spline_around(2 * (resolution[0] - self.poles))[: resolution[0]])

    def points(self) -> Tensor:
        return self.base

    def vector(self, velocity: Tensor) -> Tensor:
        """Components to the south and to the east."""
        angle = REACH * torch.pi * velocity
        return angle[..., :1] * self.south.to(velocity) + angle[..., 1:] * self.east.to(velocity)

    def moved(self, position: Tensor, displacement: Tensor) -> Tensor:
        p = position.to(displacement.dtype)
        tangent = displacement - (displacement * p).sum(-1, keepdim=True) * p
        angle = (tangent.square().sum(-1, keepdim=True) + TINY).sqrt()
        return angle.cos() * p + (angle.sin() / angle) * tangent

    def spline(self, field: Tensor) -> Tensor:
        image = field.permute(0, 3, 1, 2) @ self.along.to(field.dtype).mT
        # A meridian goes on beyond the pole, half a turn away, and closes to a circle.
        circle = torch.cat((image, self._beyond(image).flip(-2)), -2)
        image = self.meridian.to(field.dtype) @ circle
        beyond = self._beyond(image)
        image = torch.cat((beyond[..., :MARGIN, :].flip(-2), image, beyond[..., -MARGIN:, :].flip(-2)), -2)
        return around_torus(image, -1)

    def values(self, spline: Tensor, position: Tensor) -> Tensor:
        columns = self.resolution[1]
        x, y, z = position.unbind(-1)
        ring = (x.square() + y.square() + TINY).sqrt()
        column = torch.atan2(y, x) * (columns / (2 * torch.pi))
        column = column - columns * (column.detach() / columns).floor()
        place = torch.stack((self._row(torch.atan2(ring, z)), column), -1) + MARGIN
        return spline_values(spline, place)

    def _beyond(self, image: Tensor) -> Tensor:
        """The rows as meridians meet them beyond the poles: half a turn away, without the poles themselves."""
        rows = self.resolution[0]
        return image.roll(self.resolution[1] // 2, -1)[..., self.poles : rows - self.poles, :]

    def _row(self, theta: Tensor) -> Tensor:
        """The row of a colatitude, a number between rows; the rows beyond the poles mirror the first and the last."""
        known = self.colatitudes.to(theta)
        first, last = known[self.poles], known[-1 - self.poles]
        known = torch.cat((-first[None], known, 2 * torch.pi - last[None]))
        above = torch.searchsorted(known, theta.detach().contiguous()).clamp(1, len(known) - 1)
        low, high = known[above - 1], known[above]
        return above - 2 + (theta - low) / (high - low)


def surfaces(resolution: tuple[int, int], geometry: Geometry, parity: Parity) -> tuple[Surface, Surface]:
    """The surface of a geometry: for velocities, and for fields with this parity."""
    if isinstance(geometry, Sphere):
        globe = Globe(resolution, geometry)
        return globe, globe
    assert isinstance(geometry, Box)
    # Velocities are smooth, and in a mirror they stay as they are: a line between points twice as close is enough.
    return Plane(resolution, geometry, degree=1), Plane(resolution, geometry, parity)


class Transport(nn.Module):
    """Moves fields (batch, x, y, field) by velocities (batch, x, y, 4), between two learned filters.

    With `refine` above one they may also lie on a grid with so many points for each of these, along each axis.

    `filter`: nothing, a multiplier per frequency, or that between transforms that learn a matrix
    along x per frequency of y. `sheared`: the transforms of Monarch filters work in the coordinates x + y and y.
    `parity`: how fields go on beyond walls, where filters see the same: cosines there, or sines.
    """

    VELOCITIES = 4
    """Channels that a network gives: a velocity for each half of the step."""

    def __init__(
        self,
        resolution: tuple[int, int],
        geometry: Geometry,
        fields: int = 1,
        *,
        filter: Filter = "diagonal",
        sheared: bool = False,
        parity: Parity = "even",
        refine: int = 1,
    ) -> None:
        super().__init__()
        self.geometry = geometry
        self.paths, self.surface = surfaces(resolution, geometry, parity)
        self.kind, self.parity, self.refine = filter, parity, refine
        # Along an axis that ends a Fourier series would see a jump, and cosines of a field that is zero there a kink.
        between_walls = "dct" if parity == "even" else "dst"
        start = PerAxis(*(between_walls if ends else "dft" for ends in geometry.bounded))
        learns: dict[str, Any] = (
            {"learn": ("per-frequency", "fixed"), "shear": sheared} if filter == "monarch" else {}
        )
        modes = resolution[0] // 2, resolution[1] // 2
        self.transform = PlaneTransform(resolution, modes, start=start, **learns)
        # Real multipliers: a filter neither turns nor shifts the field, which is what velocities are for.
        # Between walls both ways the two parts of a mode are waves of their own (`starts.RealWaves`).
        parts = 2 if all(geometry.bounded) else 1
        shape = (2, self.transform.num_modes, fields, 1, parts)  # before the way and after it
        self.filters = nn.Parameter(torch.zeros(shape), requires_grad=filter != "none")
        self.finer: FinerTransport | None = None
        if refine > 1:
            assert geometry == Box(), "a finer grid is one of a torus"
            assert filter != "monarch", "the transforms of a Monarch filter belong to one grid"
            self.finer = FinerTransport(resolution, refine, self.transform, self.filters)

    def forward(self, field: Tensor, velocities: Tensor) -> Tensor:
        if velocities.dtype in HALF:
            velocities = velocities.float()
        origins = self.paths.origins(velocities)
        filters = None if self.kind == "none" else self.filters
        if self.finer is not None and self.finer.refinement.is_fine(field):
            way = origins - self.paths.points().to(origins)
            finer: Tensor = self.finer(field, way, filters)
            return finer
        return carried(field, origins, self.surface, self.transform, filters)

    def not_resampled_because(self, resolution: tuple[int, int]) -> str | None:
        """Why it cannot move to this grid; None if it can."""
        if self.finer is not None:
            return "what it carries has a finer grid of its own"
        return self.transform.not_resampled_because(resolution) if self.kind == "monarch" else None

    def resampled(self, resolution: tuple[int, int]) -> "Transport":
        """The same on another grid; frequencies that are new there pass the filter unchanged."""
        _, _, fields, _, parts = self.filters.shape
        new = Transport(resolution, self.geometry, fields, filter=self.kind, parity=self.parity)
        new = new.to(self.filters)
        if self.kind == "monarch":
            new.transform, new.filters = self.transform.resampled(resolution).to(self.filters), self.filters
            return new
        (x, y), (new_x, new_y) = self.transform.modes, new.transform.modes
        old = self.filters.detach().view(2, y, 2 * x, fields, parts)
        made = new.filters.data.view(2, new_y, 2 * new_x, fields, parts)
        along_x, along_y = min(x, new_x), min(y, new_y)
        if self.geometry.bounded[0]:  # cosines or sines, the smoothest first
            made[:, :along_y, : 2 * along_x] = old[:, :along_y, : 2 * along_x]
        else:  # frequencies from 0 up, then those below 0
            made[:, :along_y, :along_x] = old[:, :along_y, :along_x]
            made[:, :along_y, -along_x:] = old[:, :along_y, -along_x:]
        return new

    def flops(self) -> int:
        """Real operations on one sample: the filters, and the neighbours of each value between points."""
        transform = self.transform if self.finer is None else self.finer.transform
        (rows, columns), fields = self.transform.grid, self.filters.shape[2]
        at_a_point = 3 * self.paths.vectors * self.paths.neighbours
        at_a_point += fields * self.refine**2 * self.surface.neighbours
        there, back = transform.analysis.flops(fields), transform.synthesis.flops(fields)
        return 2 * (there + back) + 2 * at_a_point * rows * columns


class FinerTransport(nn.Module):
    """The same on a grid with `times` as many points along each axis of a torus; the way is that of the coarser one."""

    nearest: Tensor

    def __init__(
        self, resolution: tuple[int, int], times: int, coarser: PlaneTransform, filters: Tensor
    ) -> None:
        super().__init__()
        self.refinement = Refinement(resolution, times)
        finer = self.refinement.resolution
        # Little is left at the highest frequencies of the finer grid: a spline through its own points will do.
        self.surface = Plane(finer, Box(), through=1)
        self.transform = PlaneTransform(finer, (finer[0] // 2, finer[1] // 2))
        self.register_buffer("nearest", nearest(self.transform.modes, coarser.modes), persistent=False)
        shape = (2, self.transform.num_modes, *filters.shape[2:])
        self.filters = nn.Parameter(torch.zeros(shape), requires_grad=filters.requires_grad)

    def forward(self, field: Tensor, way: Tensor, filters: Tensor | None) -> Tensor:
        way = self.refinement.times * self.refinement.refined(way)
        origins = self.surface.moved(self.surface.points(), way)
        if filters is not None:
            filters = self.filters + filters[:, self.nearest]
        return carried(field, origins, self.surface, self.transform, filters)


def carried(
    field: Tensor, origins: Tensor, here: Surface, transform: PlaneTransform, filters: Tensor | None
) -> Tensor:
    """A field sampled at its origins, between two filters (before and after, mode, field, 1, part)."""
    if filters is None:
        return here.sample(field, origins)
    before, after = filters[0], filters[1]  # by number: unpacked, a rollout cannot be exported
    field = field + transform.filtered(field, before)
    field = here.sample(field, origins)
    return field + transform.filtered(field, after)
