"""What happens at each point by itself. Channels are the last axis."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, glu, relu

Activation = Literal["gelu", "relu"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": gelu, "relu": relu}

ROWS_AT_ONCE = 2048
"""Points whose hidden layer is in the cache at the same time."""


def mix_points(layer: nn.Linear, x: Tensor) -> Tensor:
    """layer(x) for a field (batch, x, y, channel), in the order in memory in which the transforms take and leave it.

    That is channels first or, for transforms with a matrix per row, rows first and channels second; so nothing is
    copied from one order to another.

    >>> layer, x = nn.Linear(3, 5), torch.randn(3, 2, 8, 8).permute(1, 2, 3, 0)
    >>> torch.allclose(mix_points(layer, x), layer(x), atol=1e-6)
    True
    """
    batch, rows, columns, channels = x.shape
    offset = layer.bias[:, None]
    by_row = x.permute(1, 3, 0, 2)
    if by_row.is_contiguous():
        mixed = torch.baddbmm(offset, layer.weight.expand(rows, -1, -1), by_row.flatten(2))
        return mixed.view(rows, -1, batch, columns).permute(2, 0, 3, 1)
    mixed = torch.addmm(offset, layer.weight, x.permute(3, 0, 1, 2).reshape(channels, -1))
    return mixed.view(-1, batch, rows, columns).permute(1, 2, 3, 0)


def split_channels(x: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """The `first` channels of a field (batch, x, y, channel) and the others.

    Two slices would each fill a whole field with zeros on the way back.
    """
    parts = x.permute(3, 0, 1, 2).split((first, x.shape[-1] - first))
    return parts[0].permute(1, 2, 3, 0), parts[1].permute(1, 2, 3, 0)


def gate(x: Tensor) -> Tensor:
    """The first half of the channels of a field (batch, x, y, channel), times sigmoids of the second half.

    Asked for along its last axis, torch's glu writes gradients channels last, across the order in memory of
    `mix_points`: that takes several times as long.
    """
    return glu(x.permute(3, 0, 1, 2), dim=0).permute(1, 2, 3, 0)


class TwoLayers(torch.autograd.Function):
    """W_2 a(W_1 x + b_1) + b_2, a few rows at a time, the hidden layer computed again on the way back.

    Nothing else of an operator is as wide as a hidden layer: written to memory and read back, it would take half of
    a training step.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor, activation: Activation
    ) -> Tensor:
        ctx.save_for_backward(x, W1, b1, W2)
        ctx.activation = activation
        act = ACTIVATIONS[activation]
        pieces = x.split(ROWS_AT_ONCE)
        return torch.cat([torch.addmm(b2, act(torch.addmm(b1, rows, W1.T)), W2.T) for rows in pieces])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, W1, b1, W2 = ctx.saved_tensors
        act = ACTIVATIONS[ctx.activation]
        by_x, by_W1, by_b1, by_W2 = torch.empty_like(x), *(torch.zeros_like(p) for p in (W1, b1, W2))
        pieces = (part.split(ROWS_AT_ONCE) for part in (x, gradient, by_x))
        for rows, above, by_rows in zip(*pieces, strict=True):
            hidden = torch.addmm(b1, rows, W1.T)
            by_W2.addmm_(above.T, act(hidden))
            by_hidden = above @ W2
            if ctx.activation == "gelu":
                by_hidden = torch.ops.aten.gelu_backward(by_hidden, hidden)
            else:
                by_hidden *= hidden > 0
            by_W1.addmm_(by_hidden.T, rows)
            by_b1 += by_hidden.sum(0)
            torch.mm(by_hidden, W1, out=by_rows)
        return by_x, by_W1, by_b1, by_W2, gradient.sum(0), None


class PointwiseNet(nn.Module):
    """channels -> hidden -> out at every point.

    >>> net = PointwiseNet(20, 128, 1, "gelu")
    >>> x = torch.randn(2, 8, 8, 20)
    >>> torch.allclose(net(x), net.second(gelu(net.first(x))), atol=1e-6)
    True
    """

    def __init__(self, channels: int, hidden: int, out: int, activation: Activation) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(channels, hidden), nn.Linear(hidden, out)
        self.activation: Activation = activation

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.first, self.second
        if torch.compiler.is_compiling() or torch.is_autocast_enabled(x.device.type):
            return second(
                ACTIVATIONS[self.activation](first(x))
            )  # plain operations, for compilers and half types
        rows, shape = x.reshape(-1, x.shape[-1]), x.shape[:-1]
        layers = (first.weight, first.bias, second.weight, second.bias)
        out: Tensor = TwoLayers.apply(rows, *layers, self.activation)
        return out.view(*shape, -1)


def linear_flops(module: nn.Module, points: int) -> int:
    """Real operations of all linear maps in a module, applied at so many points."""
    maps = (layer for layer in module.modules() if isinstance(layer, nn.Linear))
    return sum(2 * points * layer.in_features * layer.out_features for layer in maps)
