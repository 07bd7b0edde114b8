"""The fastMRI U-Net on the zero-filled image."""

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad

from lab.errors import UserError
from mri.models.parts.method import Method, sense_flops

SLOPE = 0.2


class UNet(Method):
    """Zero-filled SENSE, then a U-Net on its real and imaginary parts (Zbontar et al. 2018, SKM-TEA's baseline).

    Four levels of two 3 x 3 convolutions, instance normalisation and leaky ReLU; average pooling down,
    transposed convolutions up. With 32 channels it has 7,756,418 parameters, whatever the size of the image.
    """

    any_plane = True
    not_in_pairs_because = None

    def __init__(
        self, plane: tuple[int, int], density: Tensor | None = None, channels: int = 32, levels: int = 4
    ) -> None:
        super().__init__(plane, density)
        _check(plane, levels)
        widths = [channels * 2**level for level in range(levels + 1)]
        self.down = nn.ModuleList(
            _convolutions(before, after) for before, after in zip([2, *widths[:-2]], widths[:-1], strict=True)
        )
        self.bottom = _convolutions(widths[-2], widths[-1])
        upwards = list(zip(reversed(widths[1:]), reversed(widths[:-1]), strict=True))
        self.rise = nn.ModuleList(_transposed(deep, wide) for deep, wide in upwards)
        self.up = nn.ModuleList(_convolutions(2 * wide, wide) for _, wide in upwards)
        self.last = nn.Conv2d(channels, 2, 1)

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        return self.network(self.measurement(maps).adjoint(kspace))

    def network(self, image: Tensor) -> Tensor:
        """The U-Net itself, from complex images (batch, ky, kz), or pairs, to the same."""
        x = (torch.view_as_real(image) if image.is_complex() else image).movedim(-1, 1)
        _check((x.shape[-2], x.shape[-1]), len(self.down))  # it may have been built for larger slices
        # Instance normalisation forgets how bright a slice is, so it is taken out before and put back after,
        # as fastMRI's own pipeline does.
        scale = x.square().mean((1, 2, 3), keepdim=True).sqrt().clamp_min(1e-12)
        x = x / scale
        skips = []
        for convolutions in self.down:
            x = convolutions(x)
            skips.append(x)
            x = avg_pool2d(x, 2)
        x = self.bottom(x)
        for rise, convolutions in zip(self.rise, self.up, strict=True):
            skip = skips.pop()
            x = convolutions(torch.cat([_as_large_as(skip, rise(x)), skip], 1))
        pairs: Tensor = (self.last(x) * scale).movedim(1, -1)
        return torch.view_as_complex(pairs.contiguous()) if image.is_complex() else pairs

    def flops(self, coils: int) -> int:
        return sense_flops(self.plane, coils) + self.network_flops()

    def network_flops(self) -> int:
        """Real operations of the U-Net itself."""
        points = [(self.plane[0] >> level) * (self.plane[1] >> level) for level in range(len(self.down) + 1)]
        blocks = [
            *zip([*self.down, self.bottom], points, strict=True),
            *zip(self.up, points[-2::-1], strict=True),
        ]
        # Each input point of a 2 x 2 transposed convolution of stride 2 makes 4 outputs.
        blocks += zip([*self.rise], points[:0:-1], strict=True)
        convolving = sum(2 * weight.numel() * n for block, n in blocks for weight in block.parameters())
        return convolving + 2 * self.last.weight.numel() * points[0]


def _check(plane: tuple[int, int], levels: int) -> None:
    """Refuse slices of which nothing is left at the bottom."""
    if (plane[0] >> levels) * (plane[1] >> levels) < 2:
        least = 2**levels
        raise UserError(
            f"a U-Net of {levels} levels needs slices of at least {least} x {2 * least}, not {plane[0]} x {plane[1]}."
        )


def _convolutions(before: int, after: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (before, after):
        layers += [
            nn.Conv2d(channels, after, 3, padding=1, bias=False),
            nn.InstanceNorm2d(after),
            nn.LeakyReLU(SLOPE, inplace=True),
        ]
    return nn.Sequential(*layers)


def _transposed(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.ConvTranspose2d(before, after, 2, 2, bias=False),
        nn.InstanceNorm2d(after),
        nn.LeakyReLU(SLOPE, inplace=True),
    )


def _as_large_as(skip: Tensor, x: Tensor) -> Tensor:
    """Reflect one line at the end of an axis whose length was odd before pooling."""
    missing = [skip.shape[-1] - x.shape[-1], skip.shape[-2] - x.shape[-2]]
    return pad(x, [0, missing[0], 0, missing[1]], "reflect") if any(missing) else x
