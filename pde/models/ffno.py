"""F-FNO (Tran et al. 2023): each axis by itself, and the residual after the feed-forward."""

from torch import nn

from pde.models.operator import FactorisedOperator
from pde.models.resolution import Resolution, sides
from pde.models.transform import Axis


class FFNO(FactorisedOperator):
    """The factorised Fourier neural operator, the strongest Fourier baseline of its size."""

    def __init__(
        self,
        in_channels: int,
        resolution: Resolution,
        fields: int = 1,
        *,
        width: int = 20,
        modes: int = 12,
        depth: int = 4,
        expansion: int = 2,
    ) -> None:
        axes = nn.ModuleList(Axis(n, modes, signed=False) for n in sides(resolution))
        super().__init__(in_channels, resolution, width, modes, depth, expansion, lambda: axes, fields=fields)
