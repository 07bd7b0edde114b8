"""F-FNO (Tran et al. 2023): each axis by itself, and the residual after the feed-forward."""

from monarch_core import AxisTransform
from pde.models.parts.coordinates import Coordinates
from pde.models.parts.factorised import FactorisedOperator, along_axes
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.transport import Transport


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
        coordinates: Coordinates | None = None,
        transport: Transport | None = None,
    ) -> None:
        # There is nothing to learn in them, so all layers share them.
        axes = along_axes(lambda _, points: AxisTransform(points, modes), sides(resolution))
        super().__init__(
            in_channels,
            resolution,
            width,
            modes,
            depth,
            expansion,
            lambda: axes,
            fields=fields,
            coordinates=coordinates,
            transport=transport,
        )
