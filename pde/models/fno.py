"""FNO-2D (Li et al. 2021): spectral layers with the Fourier transform, or another one that is as fixed."""

from collections.abc import Sequence

from monarch_core import PlaneTransform
from monarch_core.transforms.starts import Latitudes
from pde.models.parts.coordinates import Coordinates
from pde.models.parts.plain import PlainOperator
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.transport import Transport


class FNO(PlainOperator):
    """The Fourier neural operator: 4 layers, 12 modes, width 20; 926,357 parameters with 10 frames in.

    The published count, 414,517, is that of modes 8 with batch norm.

    Arguments:
        start: the transform; dct and dst suit walls, sht the sphere.
        padding: rows and columns of zeros beyond the grid, as is done where a field is not periodic.
        latitudes: the grid of a sphere, for sht.
        coordinates, transport: see `SpectralOperator`.
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
        batch_norm: bool = False,
        start: str = "dft",
        padding: Sequence[int] = (0, 0),
        latitudes: Latitudes = "legendre-gauss",
        coordinates: Coordinates | None = None,
        transport: Transport | None = None,
    ) -> None:
        rows, columns = sides(resolution)
        seen = rows + padding[0], columns + padding[1]
        plane = PlaneTransform(
            seen, modes, start=start, latitudes=latitudes
        )  # fixed, so one serves all layers
        super().__init__(
            in_channels,
            resolution,
            width,
            depth,
            lambda: plane,
            batch_norm,
            fields=fields,
            padding=padding,
            coordinates=coordinates,
            transport=transport,
        )
