"""The end-to-end variational network, with coil maps given: a learned baseline that revisits the data."""

from typing import cast

import torch
from torch import Tensor, nn

from data.scans.sense import Sense
from mri.models.parts.method import Method, sense_flops
from mri.models.unet import UNet


class VarNet(Method):
    """Gradient descent on the misfit, unrolled, with a U-Net of its own in each cascade (Sriram et al. 2020):

        x <- x + eta_k A^H (y - A x) + U_k(x),   from x = A^H y, A the measurement.

    The original works on k-space and estimates the coil maps; here they are given, and the same step is written for
    the image. The U-Nets are fastMRI's, but small, and begin near zero, so that an untrained network is near
    gradient descent. 6 cascades of 8 channels and 2 levels have about 175,000 parameters, 27 channels about
    2 million, whatever the size of the image.
    """

    any_plane = True

    def __init__(
        self,
        plane: tuple[int, int],
        density: Tensor | None = None,
        *,
        cascades: int = 6,
        channels: int = 8,
        levels: int = 2,
    ) -> None:
        super().__init__(plane, density)
        self.refinements = nn.ModuleList(UNet(plane, density, channels, levels) for _ in range(cascades))
        self.eta = nn.Parameter(torch.ones(cascades))
        for unet in self._unets():
            for parameter in unet.last.parameters():
                nn.init.normal_(parameter, std=0.01)

    def _unets(self) -> list[UNet]:
        return [cast(UNet, unet) for unet in self.refinements]

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        measure = Sense(maps, mask)
        image = zero_filled = measure.adjoint(kspace)
        for eta, unet in zip(self.eta, self._unets(), strict=True):
            image = image + eta * (zero_filled - measure.normal(image)) + unet.network(image)
        return image

    def flops(self, coils: int) -> int:
        refining = sum(unet.network_flops() for unet in self._unets())
        return (1 + 2 * len(self.eta)) * sense_flops(self.plane, coils) + refining
