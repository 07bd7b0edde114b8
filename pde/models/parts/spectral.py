"""What the spectral operators share: analyse, mix the channels of each mode, synthesise."""

from collections.abc import Iterator

from torch import Tensor, nn

from monarch_core import AxisTransform, PlaneTransform
from monarch_core.pairs import product
from pde.models.parts.model import Model
from pde.models.parts.pointwise import linear_flops
from pde.models.parts.resolution import Resolution, sides


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

    def flops(self) -> int:
        (rows, columns), (below, beside) = self.resolution, self.padding
        lifting = linear_flops(self, rows * columns) - linear_flops(self.layers, rows * columns)
        at_points = lifting + linear_flops(self.layers, (rows + below) * (columns + beside))
        return at_points + sum(part.flops() for part in self.spectral_parts())

    def spectral_parts(self) -> Iterator[SpectralMap]:
        """Where transforms are applied."""
        return (module for module in self.modules() if isinstance(module, SpectralMap))

    def not_resampled_because(self, resolution: Resolution) -> str | None:
        if any(self.padding):
            return "its padding is a number of points"
        rows, columns = sides(resolution)
        for module in self.modules():
            if isinstance(module, PlaneTransform):
                reason = module.not_resampled_because((rows, columns))
            elif isinstance(module, AxisTransform):
                reason = module.not_resampled_because(min(rows, columns))
            else:
                continue
            if reason:
                return reason
        return None
