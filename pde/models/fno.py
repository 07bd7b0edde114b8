"""FNO-2D (Li et al. 2021): spectral layers with the Fourier transform."""

from pde.models.operator import PlainOperator
from pde.models.plane import Plane


class FNO(PlainOperator):
    """The Fourier neural operator: 4 layers, 12 modes, width 20; 926,357 parameters with 10 frames in.

    The published count, 414,517, is that of modes 8 with batch norm.
    """

    def __init__(
        self,
        in_frames: int,
        resolution: int,
        *,
        width: int = 20,
        modes: int = 12,
        depth: int = 4,
        batch_norm: bool = False,
    ) -> None:
        plane = Plane(resolution, modes)  # without parameters, so one serves all layers
        super().__init__(in_frames, resolution, width, modes, depth, lambda: plane, batch_norm)
