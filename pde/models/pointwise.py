"""What happens at each point by itself: coordinates in, channels out. Channels are the last axis."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

ROWS_AT_ONCE = 2048
"""Points whose hidden layer is in the cache at the same time."""


def with_coordinates(field: Tensor) -> Tensor:
    """(batch, x, y, channel) with x and y, from 0 to 1, as two more channels."""
    batch, n, m, _ = field.shape
    x = torch.linspace(0, 1, n, device=field.device, dtype=field.dtype)[:, None].expand(n, m)
    y = torch.linspace(0, 1, m, device=field.device, dtype=field.dtype)[None, :].expand(n, m)
    return torch.cat((field, torch.stack((x, y), -1).expand(batch, n, m, 2)), dim=-1)


class TwoLayers(torch.autograd.Function):
    """W_2 gelu(W_1 x + b_1) + b_2, a few rows at a time, the hidden layer computed again on the way back.

    Nothing else of the operator is as wide as the hidden layer: written to memory and read back, it would take half
    of a training step.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> Tensor:
        ctx.save_for_backward(x, W1, b1, W2)
        return torch.cat(
            [torch.addmm(b2, gelu(torch.addmm(b1, rows, W1.T)), W2.T) for rows in x.split(ROWS_AT_ONCE)]
        )

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        x, W1, b1, W2 = ctx.saved_tensors
        by_x, by_W1, by_b1, by_W2 = torch.empty_like(x), *(torch.zeros_like(p) for p in (W1, b1, W2))
        pieces = (part.split(ROWS_AT_ONCE) for part in (x, gradient, by_x))
        for rows, above, by_rows in zip(*pieces, strict=True):
            hidden = torch.addmm(b1, rows, W1.T)
            by_W2.addmm_(above.T, gelu(hidden))
            by_hidden = torch.ops.aten.gelu_backward(above @ W2, hidden)
            by_W1.addmm_(by_hidden.T, rows)
            by_b1 += by_hidden.sum(0)
            torch.mm(by_hidden, W1, out=by_rows)
        return by_x, by_W1, by_b1, by_W2, gradient.sum(0)


class Projection(nn.Module):
    """channels -> hidden -> out at every point, with GELU between.

    >>> project = Projection(20, 128, 1)
    >>> x = torch.randn(2, 8, 8, 20)
    >>> torch.allclose(project(x), project.second(gelu(project.first(x))), atol=1e-6)
    True
    """

    def __init__(self, channels: int, hidden: int, out: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(channels, hidden), nn.Linear(hidden, out)

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.first, self.second
        rows = x.reshape(-1, x.shape[-1])
        out: Tensor = TwoLayers.apply(rows, first.weight, first.bias, second.weight, second.bias)
        return out.view(*x.shape[:-1], -1)


def linear_flops(module: nn.Module, points: int) -> int:
    """Real operations of all linear maps in a module, applied at so many points."""
    maps = (layer for layer in module.modules() if isinstance(layer, nn.Linear))
    return sum(2 * points * layer.in_features * layer.out_features for layer in maps)
