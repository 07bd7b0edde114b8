"""SFNO (Bonev et al. 2023): the harmonics of the sphere, and a channel matrix per degree, shared by its orders."""

from monarch_core import SphereTransform
from monarch_core.transforms.starts import Latitudes
from pde.models.parts.coordinates import Coordinates
from pde.models.parts.plain import PlainOperator
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.transport import Transport


class SFNO(PlainOperator):
    """The spherical Fourier neural operator in FNO's architecture: only the spectral layers differ.

    It keeps the degrees l < 2 `modes` and all their orders: 4 modes^2 real numbers, as many as an FNO.
    """

    def __init__(
        self,
        in_channels: int,
        resolution: Resolution,
        fields: int = 1,
        *,
        width: int = 20,
        modes: int = 12,
        depth: int = 4,
        latitudes: Latitudes = "legendre-gauss",
        coordinates: Coordinates | None = None,
        transport: Transport | None = None,
    ) -> None:
        sphere = SphereTransform(
            sides(resolution), 2 * modes, latitudes=latitudes
        )  # fixed, so one serves all layers
        super().__init__(
            in_channels,
            resolution,
            width,
            depth,
            lambda: sphere,
            fields=fields,
            coordinates=coordinates,
            transport=transport,
        )
