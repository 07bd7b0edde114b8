"""Stacks of experts as Monarch matrices, in place of the experts' modules of Hugging Face's transformers.

Mixtral, Qwen-MoE, GPT-OSS and their relatives hold the weights of all experts in two parameters with three axes
(expert, out, in), or (expert, in, out), and read them directly.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from .linear import multipliers, revive
from .multiply import multiply
from .projection import project
from .sizes import Blocks, resolve_blocks, resolve_rank


class MonarchStack(nn.Module):
    """E Monarch matrices of one size, R (E, K, J, r, I) and L (E, J, O, K, r); `stack(x, e)` applies number e.

    >>> stack = MonarchStack(torch.randn(3, 32, 64), blocks=4)
    >>> stack(torch.ones(5, 64), 2).shape
    torch.Size([5, 32])
    """

    def __init__(self, weight: Tensor, blocks: Blocks = 4, rank: int | None = None) -> None:
        super().__init__()
        count, out_features, in_features = weight.shape
        self.in_features, self.out_features = in_features, out_features
        K, J = resolve_blocks(in_features, out_features, blocks)
        r = resolve_rank(in_features, out_features, (K, J), rank)
        padded = nn.functional.pad(weight.detach(), (0, -in_features % K, 0, -out_features % J))
        if weight.is_meta:
            R = weight.new_empty(count, K, J, r, padded.shape[2] // K)
            L = weight.new_empty(count, J, padded.shape[1] // J, K, r)
        else:
            R, L = project(padded, (K, J), r)
            revive(R)
        self.R, self.L = (nn.Parameter(f, requires_grad=weight.requires_grad) for f in (R, L))

    @property
    def blocks(self) -> tuple[int, int]:
        return self.R.shape[1], self.R.shape[2]

    def forward(self, x: Tensor, expert: int) -> Tensor:
        """The matrix of one expert times the last axis of x."""
        R, L = self.R[expert], self.L[expert]
        missing = R.shape[0] * R.shape[3] - self.in_features
        y = multiply(nn.functional.pad(x, (0, missing)) if missing else x, R, L)
        return y[..., : self.out_features]

    def to_dense(self) -> Tensor:
        """The matrices (E, out_features, in_features)."""
        dense = torch.einsum("ejlkr,ekjri->eljki", self.L, self.R).flatten(3).flatten(1, 2)
        return dense[:, : self.out_features, : self.in_features]

    def learning_rate_multipliers(self) -> dict[str, float]:
        """As those of a MonarchLinear."""
        return multipliers(self.R, self.in_features)

    def extra_repr(self) -> str:
        sizes = f"{len(self.R)} x {self.in_features} -> {self.out_features}"
        return f"{sizes}, blocks={self.blocks}, rank={self.R.shape[3]}"


class MonarchExperts(nn.Module):
    """The experts' module of a mixture with Monarch matrices, and the same call: (tokens, experts, weights)."""

    up_bias: nn.Parameter | None
    down_bias: nn.Parameter | None

    def __init__(self, experts: nn.Module, blocks: Blocks = 4, rank: int | None = None) -> None:
        super().__init__()
        # Whoever walks through the modules would take the emptied original for one with weights.
        shell = cast(Any, _emptied(experts))
        self.__dict__["_shell"] = shell
        self.rank = rank
        weights = {name: experts.get_parameter(name) for name in weight_names(experts)}
        up, down = (w.mT if shell.is_transposed else w for w in weights.values())
        trains = next(iter(weights.values())).requires_grad
        self.up, self.down = (
            MonarchStack(w.detach().requires_grad_(trains), blocks, rank) for w in (up, down)
        )
        biases = [experts._parameters.get(f"{name}_bias") for name in weights]
        self.register_parameter("up_bias", biases[0])
        self.register_parameter("down_bias", biases[1])
        self.train(experts.training)

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        """The weighted sum of the chosen experts' outputs for each token (tokens, features)."""
        shell, out = self._shell, torch.zeros_like(hidden_states)
        activation = shell._apply_gate if shell.has_gate else shell.act_fn
        for expert in torch.unique(top_k_index).tolist():
            if expert >= len(self.up.R):  # tokens masked out in expert-parallel runs
                continue
            token, slot = torch.where(top_k_index == expert)
            x = self._affine(self.up, self.up_bias, hidden_states[token], expert)
            y = self._affine(self.down, self.down_bias, activation(x), expert)
            out.index_add_(0, token, (y * top_k_weights[token, slot, None]).to(out.dtype))
        return out

    @staticmethod
    def _affine(stack: MonarchStack, bias: Tensor | None, x: Tensor, expert: int) -> Tensor:
        y: Tensor = stack(x, expert)
        return y if bias is None else y + bias[expert]

    def to_dense_layer(self) -> nn.Module:
        """The original module with exactly these matrices and biases."""
        dense = _emptied(self._shell)
        for name, stack, bias in zip(
            weight_names(dense), (self.up, self.down), (self.up_bias, self.down_bias), strict=True
        ):
            weight = stack.to_dense().detach()
            weight = weight.mT if self._shell.is_transposed else weight
            dense.register_parameter(name, nn.Parameter(weight.contiguous(), stack.R.requires_grad))
            if bias is not None:
                dense.register_parameter(f"{name}_bias", bias)
        return dense.train(self.training)

    def structure(self) -> dict[str, Any]:
        """What `load_converted` needs to rebuild the module from a dense one."""
        return {"kind": "experts", "blocks": list(self.up.blocks), "rank": self.rank}

    @property
    def _shell(self) -> Any:
        return self.__dict__["_shell"]


def weight_names(experts: nn.Module) -> tuple[str, str]:
    """The names of the two stacked weights of an experts' module."""
    return ("gate_up_proj" if cast(Any, experts).has_gate else "up_proj"), "down_proj"


def is_expert_stack(module: nn.Module) -> bool:
    """Whether the module follows the common layout of transformers' experts, in all that matters here."""
    flags = ("has_gate", "has_bias", "is_transposed")
    if not all(hasattr(module, flag) for flag in flags) or getattr(module, "has_post_expert_norm", False):
        return False
    names = weight_names(module)
    allowed = {*names, *(f"{name}_bias" for name in names)}
    own = {name: p for name, p in module.named_parameters() if p is not None}
    return set(names) <= set(own) <= allowed and all(own[name].dim() == 3 for name in names)


def _emptied(experts: nn.Module) -> nn.Module:
    """A copy of the module with its children and settings, without its parameters."""
    new = experts.__class__.__new__(experts.__class__)
    new.__dict__ = dict(experts.__dict__)
    new._parameters = {}
    return new
