"""What the spectral operators share: analyse, mix the channels of each mode, synthesise."""

from collections.abc import Iterator
from typing import Self

from torch import Tensor, nn

from monarch_core import AxisTransform, PlaneTransform
from monarch_core.pairs import product
from pde.models.parts.coordinates import Coordinates
from pde.models.parts.model import Model
from pde.models.parts.pointwise import linear_flops
from pde.models.parts.refinement import BEGINS, Refinement
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.transport import Transport


class SpectralMap(nn.Module):
    """S(W(A x)): the modes of x, each with a channel matrix of its own, and the field that they make.

    weight: the matrices to begin with, (mode, out, in, 2), re and im last.
    """

    def __init__(self, plane: PlaneTransform, weight: Tensor) -> None:
        super().__init__()
        self.plane, self.weight = plane, nn.Parameter(weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.plane.synthesise(product(self.weight, self.plane.analyse(x)))

    def flops(self) -> int:
        """Real operations on one field."""
        _, out, channels, _ = self.weight.shape
        return self.plane.flops(channels, out)


class SpectralOperator(Model):
    """A model whose layers work on modes; those of its transforms that can be resampled take it to other grids."""

    padding: tuple[int, int] = (0, 0)
    """Rows and columns of zeros that the layers see beyond the grid."""
    layers: nn.ModuleList

    def __init__(
        self,
        in_channels: int,
        resolution: Resolution,
        fields: int,
        coordinates: Coordinates | None,
        transport: Transport | None,
    ) -> None:
        super().__init__(in_channels, resolution)
        self.fields, self.transport = fields, transport
        self.coordinates = Coordinates() if coordinates is None else coordinates
        self.transports = transport is not None
        if transport is not None and transport.finer is not None:
            # One step before a forecast is enough: what is finer than the data's points does not live long.
            self.lead, self.refine_from = 1, BEGINS

    @property
    def made_channels(self) -> int:
        """What the network makes at every point: the fields and, where they are carried, velocities."""
        return self.fields + (0 if self.transport is None else self.transport.VELOCITIES)

    def made(self, frames: Tensor) -> Tensor:
        """(batch, x, y, channel) to all that the network makes."""
        raise NotImplementedError

    def forward(self, frames: Tensor) -> Tensor:
        return self.step(frames)[1]

    def step(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        made, last = self.made(self.seen(frames)), frames[..., -self.fields :]
        if self.transport is None:
            return last, made
        return self.transport(last, made[..., self.fields :]), self.as_fine(made[..., : self.fields], last)

    @property
    def refinement(self) -> Refinement | None:
        """The finer grid, where there is one."""
        return (
            None
            if self.transport is None or self.transport.finer is None
            else self.transport.finer.refinement
        )

    def refined(self, fields: Tensor) -> Tensor:
        return fields if self.refinement is None else self.refinement.refined(fields)

    def seen(self, fields: Tensor) -> Tensor:
        return fields if self.refinement is None else self.refinement.seen(fields)

    def as_fine(self, fields: Tensor, others: Tensor) -> Tensor:
        """Fields of the data's grid on the grid of others."""
        return self.refined(fields) if others.shape[1:3] != fields.shape[1:3] else fields

    def flops(self) -> int:
        (rows, columns), (below, beside) = self.resolution, self.padding
        lifting = linear_flops(self, rows * columns) - linear_flops(self.layers, rows * columns)
        at_points = lifting + linear_flops(self.layers, (rows + below) * (columns + beside))
        carrying = 0 if self.transport is None else self.transport.flops()
        return at_points + carrying + sum(part.flops() for part in self.spectral_parts())

    def spectral_parts(self) -> Iterator[SpectralMap]:
        """Where transforms are applied."""
        return (module for module in self.modules() if isinstance(module, SpectralMap))

    def not_resampled_because(self, resolution: Resolution) -> str | None:
        if any(self.padding):
            return "its padding is a number of points"
        rows, columns = sides(resolution)
        if (columns == 1) != (self.resolution[1] == 1):
            return "a model of a line is none of a plane"
        if self.transport is not None and (reason := self.transport.not_resampled_because((rows, columns))):
            return reason
        apart = set() if self.transport is None else set(self.transport.modules())
        for module in (module for module in self.modules() if module not in apart):
            if isinstance(module, PlaneTransform):
                reason = module.not_resampled_because((rows, columns))
            elif isinstance(module, AxisTransform):
                reason = module.not_resampled_because(min(n for n in (rows, columns) if n > 1))
            else:
                continue
            if reason:
                return reason
        return None

    def resampled(self, resolution: Resolution) -> Self:
        self.resolution = sides(resolution)
        if self.transport is not None:
            self.transport = self.transport.resampled(self.resolution)
        return self
