"""The Fourier twin of the Monarch Neural Operator: the latent operator with transforms that stay as they are."""

from pde.models.latent import LatentOperator
from pde.models.plane import Plane
from pde.models.resolution import Resolution, sides
from pde.models.transform import Axis, Start


class LFNO(LatentOperator):
    """The latent Fourier neural operator: what `mno` is before it learns its transforms."""

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
    ) -> None:
        def plane(grid: Resolution, out: Resolution) -> Plane:
            (rows, columns), (below, beside) = sides(grid), sides(out)
            x = Axis(rows, modes, signed=True, start=start, out=below)
            return Plane.of(x, Axis(columns, modes, signed=False, start=start, out=beside))

        super().__init__(
            in_channels, resolution, width, modes, depth, latent, plane, shared=True, fields=fields
        )
