"""The transformer block: attention and feed-forward, each normalised first and added to its input."""

from math import sqrt

from torch import Tensor, nn
from torch.nn import functional as F

from text.models.parts.layers import linear
from text.models.parts.sizes import Size


class Attention(nn.Module):
    """Multi-head attention; with `causal`, a token sees only itself and those before it."""

    def __init__(self, size: Size, blocks: int | None, causal: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.causal, self.dropout = size.heads, causal, dropout
        # Three matrices, not one of three times the height: Monarch then has the paper's number of parameters.
        self.query, self.key, self.value = (linear(size.width, size.width, blocks) for _ in range(3))
        self.out = linear(size.width, size.width, blocks, gain=1 / sqrt(2 * size.depth))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (self._by_head(project(x)) for project in (self.query, self.key, self.value))
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class FeedForward(nn.Module):
    """Two layers with GELU between them, four times as wide inside."""

    def __init__(self, size: Size, blocks: int | None) -> None:
        super().__init__()
        self.up = linear(size.width, 4 * size.width, blocks)
        self.down = linear(4 * size.width, size.width, blocks, gain=1 / sqrt(2 * size.depth))

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    """x + attention(norm x), then x + feed-forward(norm x)."""

    def __init__(self, size: Size, blocks: int | None, causal: bool, dropout: float) -> None:
        super().__init__()
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.attention = Attention(size, blocks, causal, dropout)
        self.feed_forward = FeedForward(size, blocks)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
