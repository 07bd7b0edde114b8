"""A Monarch layer in place of nn.Linear, and the learning rates that its factors want."""

from __future__ import annotations

from collections import defaultdict
from math import sqrt
from typing import Any, cast

import torch
from torch import Tensor, nn

from . import checks
from .linear_operator import checked_dtype
from .monarch import Monarch
from .multiply import is_traced, multiply
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
    replaces = "linear"
    """Which dense layer this one stands for: "linear", or "conv1d" for the one of transformers' GPT-2."""

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
        if checked_dtype(dtype, False, "MonarchLinear").is_complex:
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
        x = self.operator.checked_input(x)
        if self.bias is None:
            return self._product(x)
        # In evaluation a small operator has a dense form at hand; otherwise the bias rides along in the product.
        (K, J), size = self.operator.blocks, max(self.in_features, self.out_features)
        divides = self.in_features % K == 0 == self.out_features % J
        if divides and not is_traced() and (torch.is_grad_enabled() or size > Monarch.dense_limit):
            return multiply(x, self.operator.R, self.operator.L, self.bias)
        y = self._product(x)
        return y + self.bias.to(y.dtype)

    def _product(self, x: Tensor) -> Tensor:
        y: Tensor = self.operator(x)
        return y

    @classmethod
    def from_linear(cls, linear: nn.Linear, blocks: Blocks = 4, rank: int | None = None) -> MonarchLinear:
        """The MonarchLinear nearest to a dense layer, on its device, with its dtype, bias and flags."""
        if not isinstance(linear, nn.Linear):
            raise TypeError(f"from_linear takes an nn.Linear; got {type(linear).__name__}.")
        # The weight of a pruned or parametrised layer is computed; what trains are the parameters behind it.
        weights = [p for name, p in linear.named_parameters() if name != "bias"]
        trains = any(p.requires_grad for p in weights)
        return cls.from_weight(linear.weight, linear.bias, blocks, rank, trains).train(linear.training)

    @classmethod
    def from_weight(
        cls,
        weight: Tensor,
        bias: nn.Parameter | None = None,
        blocks: Blocks = 4,
        rank: int | None = None,
        requires_grad: bool = True,
    ) -> MonarchLinear:
        """The MonarchLinear nearest to a weight (out_features, in_features), with this very bias.

        Where a sub-block of the weight has less than the full rank, the spare rows of R start at random and those
        of L at zero: the matrix is the same, and unlike L = R = 0 it trains.
        """
        out_features, in_features = checks.tensor(weight, "the weight of a linear layer", axes=2).shape
        if bias is not None and (not isinstance(bias, nn.Parameter) or bias.shape != (out_features,)):
            raise TypeError(f"the bias should be an nn.Parameter of {out_features} numbers; got {bias!r}.")
        new = cls(in_features, out_features, False, blocks, rank, device="meta", dtype=weight.dtype)
        if not weight.is_meta:  # a layer without values has nothing to project
            new.operator = Monarch.from_dense(weight, blocks, rank)
            revive(new.operator.R)
        new.operator.requires_grad_(requires_grad)
        new.bias = bias
        return new

    def to_linear(self) -> nn.Linear:
        """The dense layer with exactly this matrix, on the same device, with the same dtype, bias and flags."""
        R = self.operator.R
        new = nn.Linear(self.in_features, self.out_features, bias=False, device="meta", dtype=R.dtype)
        new.weight = nn.Parameter(self.weight.detach().contiguous(), requires_grad=R.requires_grad)
        if self.bias is not None:
            new.bias = self.bias
        return new.train(self.training)

    def to_dense_layer(self) -> nn.Module:
        """The dense layer that this one stands for: an nn.Linear or transformers' Conv1D."""
        linear = self.to_linear()
        if self.replaces == "linear":
            return linear
        from transformers.pytorch_utils import Conv1D

        with torch.device("meta"):
            new = Conv1D(self.out_features, self.in_features)
        new.weight = nn.Parameter(linear.weight.detach().T.contiguous(), linear.weight.requires_grad)
        new.bias = self.bias
        return cast(nn.Module, new).train(self.training)

    def structure(self) -> dict[str, Any]:
        """What `load_converted` needs to rebuild the layer from a dense one."""
        return {"kind": self.replaces, "blocks": list(self.operator.blocks), "rank": self.operator.rank}

    def learning_rate_multipliers(self) -> dict[str, float]:
        """For R and L: d_in of the dense layer / d_in of the factor's blocks / number of factors."""
        return multipliers(self.operator.R, self.in_features)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


def multipliers(R: Tensor, in_features: int) -> dict[str, float]:
    """The learning rates of the factors R (..., K, J, r, I) and L, relative to that of the dense matrix."""
    K, _, r, I = R.shape[-4:]
    return {"R": in_features / I / 2, "L": in_features / (K * r) / 2}


@torch.no_grad()
def revive(R: Tensor) -> None:
    """Give the zero rows of R (..., K, J, r, I) random values of the usual size, in place.

    Projection leaves such rows, and the columns of L that belong to them at zero, where a sub-block has less than
    the full rank. Neither factor would get a gradient.
    """
    I = R.shape[-1]
    dead = R.abs().amax(-1, keepdim=True) == 0
    if dead.any():
        R.copy_(torch.where(dead, torch.randn_like(R) * sqrt(1 / (I * sqrt(3))), R))


def param_groups(model: nn.Module, lr: float, weight_decay: float = 0.0) -> list[dict[str, Any]]:
    """Parameter groups for AdamW that train a Monarch model at the learning rate tuned for its dense original.

    The factors of each MonarchLinear, and of experts, get lr times the multiplier of Compute Better Spent (Qiu et
    al., 2024), d_in(dense) / d_in(factor) / 2, all else gets lr.  The decay of a step, lr times weight_decay, is the
    same for all matrices; vectors (biases, norms) do not decay.

    >>> layer = MonarchLinear(256, 256, blocks=16)
    >>> [(g["lr"], g["weight_decay"], len(g["params"])) for g in param_groups(layer, 1e-3, 0.1)]
    [(0.001, 0.0, 1), (0.008, 0.0125, 2)]
    """
    checks.module(model, "param_groups")
    multiplier = {
        getattr(getattr(layer, "operator", layer), name): value
        for layer in model.modules()
        for name, value in cast(Any, getattr(layer, "learning_rate_multipliers", dict))().items()
    }
    groups: dict[tuple[float, float], list[nn.Parameter]] = defaultdict(list)
    for parameter in model.parameters():
        if parameter.requires_grad:
            times = multiplier.get(parameter, 1.0)
            groups[lr * times, weight_decay / times if parameter.ndim > 1 else 0.0].append(parameter)
    return [{"params": params, "lr": rate, "weight_decay": decay} for (rate, decay), params in groups.items()]
