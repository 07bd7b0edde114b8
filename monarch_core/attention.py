"""Multi-head attention whose four projections are Monarch layers, in place of nn.MultiheadAttention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention, softmax

from .linear import MonarchLinear
from .sizes import Blocks


class MonarchAttention(nn.Module):
    """nn.MultiheadAttention with Monarch projections of query, key, value and output, and the same call.

    It is made from a dense one: `MonarchAttention.from_attention(layer, blocks=4)`.

    >>> attention = MonarchAttention.from_attention(nn.MultiheadAttention(64, 4, batch_first=True))
    >>> x = torch.ones(2, 5, 64)
    >>> attention(x, x, x)[0].shape
    torch.Size([2, 5, 64])
    """

    # What torch's transformer layers ask before taking a fused path that reads weights; None keeps them off it.
    in_proj_bias = None
    _qkv_same_embed_dim = False

    def __init__(
        self,
        projections: dict[str, MonarchLinear],
        num_heads: int,
        *,
        dropout: float = 0.0,
        batch_first: bool = False,
        rank: int | None = None,
    ) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            projections[name] for name in ("q", "k", "v", "out")
        )
        self.embed_dim, self.num_heads = self.q_proj.out_features, num_heads
        self.dropout, self.batch_first, self.rank = dropout, batch_first, rank

    @classmethod
    def from_attention(
        cls, layer: nn.MultiheadAttention, blocks: Blocks = 4, rank: int | None = None
    ) -> MonarchAttention:
        """The attention with the nearest Monarch projections; biases, dropout, layout and flags stay."""
        if not isinstance(layer, nn.MultiheadAttention):
            raise TypeError(f"from_attention takes an nn.MultiheadAttention; got {type(layer).__name__}.")
        reason = unsupported(layer)
        if reason:
            raise ValueError(f"this nn.MultiheadAttention cannot become Monarch: {reason}.")
        if layer.in_proj_weight is not None:
            weights = layer.in_proj_weight.chunk(3)
            trains = layer.in_proj_weight.requires_grad
        else:
            weights = layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight
            trains = layer.q_proj_weight.requires_grad
        biases = [None] * 3 if layer.in_proj_bias is None else list(layer.in_proj_bias.detach().chunk(3))
        projections = {}
        for name, weight, bias in zip("qkv", weights, biases, strict=True):
            parameter = None
            if bias is not None:
                parameter = nn.Parameter(bias.clone(), requires_grad=layer.in_proj_bias.requires_grad)
            projections[name] = MonarchLinear.from_weight(weight, parameter, blocks, rank, trains)
        projections["out"] = MonarchLinear.from_linear(layer.out_proj, blocks, rank)
        new = cls(
            projections, layer.num_heads, dropout=layer.dropout, batch_first=layer.batch_first, rank=rank
        )
        return new.train(layer.training)

    def to_dense_layer(self) -> nn.MultiheadAttention:
        """The nn.MultiheadAttention with exactly these matrices, biases and flags."""
        q, k, v, out = (p.to_linear() for p in (self.q_proj, self.k_proj, self.v_proj, self.out_proj))
        new = nn.MultiheadAttention(
            self.embed_dim,
            self.num_heads,
            dropout=self.dropout,
            bias=q.bias is not None,
            kdim=k.in_features,
            vdim=v.in_features,
            batch_first=self.batch_first,
            device="meta",
            dtype=q.weight.dtype,
        )
        trains = q.weight.requires_grad
        if new.in_proj_weight is not None:
            stacked = torch.cat([p.weight.detach() for p in (q, k, v)])
            new.in_proj_weight = nn.Parameter(stacked, requires_grad=trains)
        else:
            new.q_proj_weight, new.k_proj_weight, new.v_proj_weight = q.weight, k.weight, v.weight
        if q.bias is not None:
            stacked = torch.cat([p.bias.detach() for p in (q, k, v)])
            new.in_proj_bias = nn.Parameter(stacked, requires_grad=q.bias.requires_grad)
            new.out_proj.bias = out.bias
        new.out_proj.weight = out.weight
        return new.train(self.training)

    def structure(self) -> dict[str, Any]:
        """What `load_converted` needs to rebuild the layer from a dense one."""
        return {"kind": "attention", "blocks": list(self.q_proj.operator.blocks), "rank": self.rank}

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As nn.MultiheadAttention: the output and, if asked for, the attention weights."""
        if is_causal and attn_mask is None:
            raise ValueError("is_causal is a hint about attn_mask; pass the mask as well.")
        batched = query.dim() == 3
        if not batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = (
            project(x).reshape(*x.shape[:2], self.num_heads, self.embed_dim // self.num_heads).transpose(1, 2)
            for project, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        mask = self._mask(q, attn_mask, key_padding_mask)
        rate = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = q @ k.mT * q.shape[-1] ** -0.5
            weights = dropout(softmax(scores if mask is None else scores + mask, -1), rate)
            heads = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            heads = scaled_dot_product_attention(q, k, v, mask, rate)
        out: Tensor = self.out_proj(heads.transpose(1, 2).flatten(-2))
        if not batched:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return out if self.batch_first else out.transpose(0, 1), weights

    def _mask(self, q: Tensor, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Both masks as one that is added to the scores (batch, heads, queries, keys)."""
        masks = []
        if attn_mask is not None:
            per_head = attn_mask.dim() == 3
            masks.append(attn_mask.reshape(q.shape[:2] + attn_mask.shape[1:]) if per_head else attn_mask)
        if padding is not None:
            masks.append(padding[:, None, None, :])
        added = [
            torch.zeros_like(m, dtype=q.dtype).masked_fill(m, -torch.inf) if m.dtype == torch.bool else m
            for m in masks
        ]
        return sum(added[1:], added[0]) if added else None

    def extra_repr(self) -> str:
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, batch_first={self.batch_first}"


def unsupported(layer: nn.MultiheadAttention) -> str:
    """Why this attention cannot become Monarch; empty if it can."""
    if layer.bias_k is not None or layer.bias_v is not None or layer.add_zero_attn:
        return "it adds a key of its own (add_bias_kv or add_zero_attn)"
    return ""
