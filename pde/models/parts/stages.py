"""The stages of encoders and decoders of Turbulent-Flow-Net (Wang et al. 2020)."""

from torch import nn


def encode(channels: int, out: int, stride: int, bias: bool = False) -> nn.Sequential:
    """3 x 3 convolution, batch norm, LeakyReLU."""
    convolution = nn.Conv2d(channels, out, 3, stride, padding=1, bias=bias)
    return nn.Sequential(convolution, nn.BatchNorm2d(out), nn.LeakyReLU(0.1))


def decode(channels: int, out: int) -> nn.Sequential:
    """4 x 4 transposed convolution that doubles the resolution, LeakyReLU."""
    return nn.Sequential(nn.ConvTranspose2d(channels, out, 4, stride=2, padding=1), nn.LeakyReLU(0.1))
