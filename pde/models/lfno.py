"""The Fourier twin of the Monarch Neural Operator: the latent operator with transforms that stay as they are."""

from pde.models.grid import GridPlane
from pde.models.latent import LatentOperator, coarse
from pde.models.legendre import Latitudes
from pde.models.plane import Plane
from pde.models.resolution import Resolution, sides
from pde.models.transform import Axis, Start


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
        start: Start = "dft",
        latitudes: Latitudes = "legendre-gauss",
    ) -> None:
        def plane(grid: Resolution, out: Resolution) -> Plane | GridPlane:
            if start == "sht":
                return GridPlane(grid, modes, start=start, learn=False, out=out, latitudes=latitudes)
            (rows, columns), (below, beside) = sides(grid), sides(out)
            x = Axis(rows, modes, signed=True, start=start, out=below)
            return Plane.of(x, Axis(columns, modes, signed=False, start=start, out=beside))

        latent = latent or coarse(sides(resolution), modes, sphere=start == "sht")
        super().__init__(
            in_channels, resolution, width, modes, depth, latent, plane, shared=True, fields=fields
        )
