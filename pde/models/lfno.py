"""The Fourier twin of the Monarch Neural Operator: the latent operator with transforms that stay as they are."""

from monarch_core import PlaneTransform
from monarch_core.transforms.starts import Latitudes
from pde.models.parts.coordinates import Coordinates
from pde.models.parts.latent import LatentOperator, coarse
from pde.models.parts.resolution import Resolution, sides
from pde.models.parts.transport import Transport


class LFNO(LatentOperator):
    """The latent Fourier neural operator: what `mno` is before it learns its transforms.

    Arguments:
        start: the transform; dct and dst suit walls, sht the sphere.
        modes_y: kept frequencies along y, where they are not as many as along x.
        shear: work in the coordinates x + y and y of a square torus.
        latent: points of the coarse grid; half of the fine one's by default.
        cells: let the layers see what lies within the cells of the coarse grid; see `LatentOperator`.
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
        modes_y: int | None = None,
        depth: int = 4,
        latent: Resolution | None = None,
        start: str = "dft",
        shear: bool = False,
        cells: bool = False,
        latitudes: Latitudes = "legendre-gauss",
        coordinates: Coordinates | None = None,
        transport: Transport | None = None,
    ) -> None:
        fine = sides(resolution)
        latent = sides(latent or coarse(fine, modes, sphere=start == "sht"))

        def plane(
            grid: tuple[int, int], out: tuple[int, int], sheared: tuple[bool, bool] = (False, False)
        ) -> PlaneTransform:
            kept = modes, modes_y or modes
            return PlaneTransform(grid, kept, out=out, start=start, shear=sheared, latitudes=latitudes)

        common = plane(latent, latent)
        super().__init__(
            in_channels,
            resolution,
            width,
            depth,
            latent,
            lambda: plane(fine, latent, (shear, False)),
            lambda: common,
            lambda: plane(latent, fine, (False, shear)),
            fields=fields,
            cells=cells,
            coordinates=coordinates,
            transport=transport,
        )
