"""F-FNO (Tran et al. 2023): each axis by itself, and the residual after the feed-forward."""

from torch import nn

from pde.models.operator import FactorisedOperator
from pde.models.transform import Axis


class FFNO(FactorisedOperator):
    """The factorised Fourier neural operator, the strongest Fourier baseline of its size."""

    def __init__(
        self,
        in_frames: int,
        resolution: int,
        *,
        width: int = 20,
        modes: int = 12,
        depth: int = 4,
        expansion: int = 2,
    ) -> None:
        axis = Axis(resolution, modes, signed=False)
        super().__init__(
            in_frames, resolution, width, modes, depth, expansion, lambda: nn.ModuleList((axis, axis))
        )
