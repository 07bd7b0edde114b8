"""A Monarch layer in place of nn.Linear, and the learning rates that its factors want."""

from __future__ import annotations

from collections import defaultdict
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from .monarch import Monarch
from .multiply import multiply
from .sizes import Blocks


class MonarchLinear(nn.Module):
    """y = M x + bias with a Monarch matrix M: a drop-in for nn.Linear.

    Arguments:
        in_features, out_features, bias, device, dtype: as for nn.Linear; real types only.
        blocks: (K, J), the numbers of blocks of R and L, or one number for both.
        rank: r of the sub-blocks; by default the least for which the middle is as wide as the narrower end.

    The outputs start with the variance that nn.Linear gives them, and the bias as nn.Linear's.

    >>> layer = MonarchLinear(64, 128, blocks=4)
    >>> layer(torch.ones(3, 64)).shape, sum(p.numel() for p in layer.parameters())
    (torch.Size([3, 128]), 3200)
    """

    operator: Monarch
    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        blocks: Blocks = 4,
        rank: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if dtype is not None and dtype.is_complex:
            raise TypeError(f"MonarchLinear is real; got dtype={dtype}. Use Monarch for a complex operator.")
        self.in_features, self.out_features = in_features, out_features
        self.operator = Monarch(in_features, out_features, blocks, rank, device=device, dtype=dtype)
        self.bias = nn.Parameter(torch.empty(out_features, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal factors of equal share in Var(M x) = Var(x) / 3, which is what nn.Linear's entries give."""
        K, _, r, _ = self.operator.R.shape
        nn.init.normal_(self.operator.R, std=sqrt(K / self.in_features / sqrt(3)))
        nn.init.normal_(self.operator.L, std=sqrt(1 / (K * r) / sqrt(3)))
        if self.bias is not None:
            nn.init.uniform_(self.bias, -1 / sqrt(self.in_features), 1 / sqrt(self.in_features))

    @property
    def weight(self) -> Tensor:
        """M as a dense matrix (out_features, in_features), for code that reads nn.Linear.weight."""
        return self.operator.to_dense()

    def forward(self, x: Tensor) -> Tensor:
        """M x + bias on the last axis of x."""
        if self.bias is None:
            return self._product(x)
        # In evaluation a small operator has a dense form at hand; otherwise the bias rides along in the product.
        (K, J), size = self.operator.blocks, max(self.in_features, self.out_features)
        divides = x.shape[-1] == self.in_features and self.in_features % K == 0 == self.out_features % J
        if divides and (torch.is_grad_enabled() or size > Monarch.dense_limit):
            return multiply(x, self.operator.R, self.operator.L, self.bias)
        y = self._product(x)
        return y + self.bias.to(y.dtype)

    def _product(self, x: Tensor) -> Tensor:
        y: Tensor = self.operator(x)
        return y

    @classmethod
    def from_linear(cls, linear: nn.Linear, blocks: Blocks = 4, rank: int | None = None) -> MonarchLinear:
        """The MonarchLinear nearest to a dense layer, on its device, with its dtype, bias and flags."""
        sizes, weight = (linear.in_features, linear.out_features), linear.weight
        new = cls(*sizes, bias=False, blocks=blocks, rank=rank, device="meta", dtype=weight.dtype)
        if not weight.is_meta:  # a layer without values has nothing to project
            new.operator = Monarch.from_dense(weight, blocks, rank)
        new.operator.requires_grad_(weight.requires_grad)
        new.bias = linear.bias
        return new.train(linear.training)

    def to_linear(self) -> nn.Linear:
        """The dense layer with exactly this matrix, on the same device, with the same dtype, bias and flags."""
        R = self.operator.R
        new = nn.Linear(self.in_features, self.out_features, bias=False, device="meta", dtype=R.dtype)
        new.weight = nn.Parameter(self.weight.detach().contiguous(), requires_grad=R.requires_grad)
        if self.bias is not None:
            new.bias = self.bias
        return new.train(self.training)

    def learning_rate_multipliers(self) -> dict[str, float]:
        """For R and L: d_in of the dense layer / d_in of the factor's blocks / number of factors."""
        K, _, r, I = self.operator.R.shape
        return {"R": self.in_features / I / 2, "L": self.in_features / (K * r) / 2}

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


def param_groups(model: nn.Module, lr: float, weight_decay: float = 0.0) -> list[dict[str, Any]]:
    """Parameter groups for AdamW that train a Monarch model at the learning rate tuned for its dense original.

    The factors of each MonarchLinear get lr times the multiplier of Compute Better Spent (Qiu et al., 2024),
    d_in(dense) / d_in(factor) / 2, all else gets lr.  The decay of a step, lr times weight_decay, is the same for
    all matrices; vectors (biases, norms) do not decay.

    >>> layer = MonarchLinear(256, 256, blocks=16)
    >>> [(g["lr"], g["weight_decay"], len(g["params"])) for g in param_groups(layer, 1e-3, 0.1)]
    [(0.001, 0.0, 1), (0.008, 0.0125, 2)]
    """
    multiplier = {
        getattr(layer.operator, name): value
        for layer in model.modules()
        if isinstance(layer, MonarchLinear)
        for name, value in layer.learning_rate_multipliers().items()
    }
    groups: dict[tuple[float, float], list[nn.Parameter]] = defaultdict(list)
    for parameter in model.parameters():
        if parameter.requires_grad:
            times = multiplier.get(parameter, 1.0)
            groups[lr * times, weight_decay / times if parameter.ndim > 1 else 0.0].append(parameter)
    return [{"params": params, "lr": rate, "weight_decay": decay} for (rate, decay), params in groups.items()]
