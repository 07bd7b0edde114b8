"""SFNO (Bonev et al. 2023): the harmonics of the sphere, and a channel matrix per degree, shared by its orders."""

import math
from typing import Any

from torch import Tensor, nn

from lab.errors import UserError
from pde.models.legendre import Latitudes
from pde.models.operator import PlainOperator
from pde.models.resolution import Resolution, sides


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
    ) -> None:
        sphere = Sphere(resolution, 2 * modes, latitudes)  # without parameters, so one serves all layers
        super().__init__(in_channels, resolution, width, modes, depth, lambda: sphere, fields=fields)


class Sphere(nn.Module):
    """The transform of torch-harmonics: (batch, latitude, longitude, channel) to (degree, channel, order and batch)."""

    def __init__(self, resolution: Resolution, degrees: int, latitudes: Latitudes) -> None:
        super().__init__()
        rows, columns = sides(resolution)
        if degrees > min(rows, columns // 2):
            raise ValueError(f"{degrees} degrees need as many latitudes and twice as many longitudes.")
        self.rows, self.columns, self.channel_matrices = rows, columns, degrees
        harmonics = _torch_harmonics()
        size = {"lmax": degrees, "mmax": degrees, "grid": latitudes}
        self.forward_transform = harmonics.RealSHT(rows, columns, **size)
        self.inverse_transform = harmonics.InverseRealSHT(rows, columns, **size)

    def analyse(self, field: Tensor) -> Tensor:
        """Forward."""
        harmonics: Tensor = self.forward_transform(field.permute(3, 0, 1, 2))
        return harmonics.permute(2, 0, 3, 1).flatten(2)

    def synthesise(self, modes: Tensor) -> Tensor:
        """Back."""
        degrees, channels, _ = modes.shape
        harmonics = modes.view(degrees, channels, degrees, -1).permute(1, 3, 0, 2)
        field: Tensor = self.inverse_transform(harmonics.contiguous())
        return field.permute(1, 2, 3, 0)

    def flops(self, channels: int) -> int:
        """Real operations of both directions and the mixing, for one field; an FFT counts 2.5 n log2 n."""
        rows, columns, degrees = self.rows, self.columns, self.channel_matrices
        fourier = 2.5 * columns * math.log2(columns) * rows
        legendre = 4 * rows * degrees * degrees
        return int(2 * channels * (fourier + legendre)) + 8 * degrees**2 * channels**2


def _torch_harmonics() -> Any:
    try:
        import torch_harmonics
    except ImportError as error:
        raise UserError(
            "the spherical Fourier operator needs torch-harmonics: pip install 'monarch-science[sphere]'"
        ) from error
    return torch_harmonics
