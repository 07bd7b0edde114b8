"""The Fourier twin of the Monarch Neural Operator: the latent operator with transforms that stay as they are."""

from monarch_core import PlaneTransform
from monarch_core.transforms.starts import Latitudes
from pde.models.parts.latent import LatentOperator, coarse
from pde.models.parts.resolution import Resolution, sides


class LFNO(LatentOperator):
    """The latent Fourier neural operator: what `mno` is before it learns its transforms.

    Arguments:
        start: the transform; dct and dst suit walls, sht the sphere.
        latent: points of the coarse grid; half of the fine one's by default.
        latitudes: the grid of a sphere, for sht.
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
        latent: Resolution | None = None,
        start: str = "dft",
        latitudes: Latitudes = "legendre-gauss",
    ) -> None:
        fine = sides(resolution)
        latent = sides(latent or coarse(fine, modes, sphere=start == "sht"))

        def plane(grid: tuple[int, int], out: tuple[int, int]) -> PlaneTransform:
            return PlaneTransform(grid, modes, out=out, start=start, latitudes=latitudes)

        common = plane(latent, latent)
        super().__init__(
            in_channels,
            resolution,
            width,
            depth,
            latent,
            lambda: plane(fine, latent),
            lambda: common,
            lambda: plane(latent, fine),
            fields=fields,
        )
