"""What all language models share: embeddings, blocks, and an output layer tied to the embedding."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from monarch_core import MonarchLinear
from text.models.parts.block import Block
from text.models.parts.sizes import SIZES

Generators = Sequence[torch.Generator] | None
"""Where random numbers come from: one generator per window, or torch's own."""


class LanguageModel(nn.Module):
    """From tokens (batch, time) to a vector per token (`hidden`), and from a vector to scores of all tokens (`logits`).

    Arguments:
        vocabulary: number of tokens to tell apart; the models may add some of their own to the embedding.
        context: the longest sequence.
        size: mini, small or medium.
        blocks: blocks of the Monarch matrices in attention and feed-forward; None for dense matrices.
        dropout: after embeddings, attention and feed-forward, and in the attention weights.
    """

    causal: ClassVar[bool]
    """Whether a token sees only those before it."""

    def __init__(
        self,
        vocabulary: int,
        context: int,
        size: str = "mini",
        blocks: int | None = None,
        dropout: float = 0.0,
        extra_tokens: int = 0,
    ) -> None:
        super().__init__()
        width, depth, _ = SIZES[size]
        self.vocabulary, self.context = vocabulary, context
        self.tokens = nn.Embedding(vocabulary + extra_tokens, width)
        self.positions = nn.Embedding(context, width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(Block(SIZES[size], blocks, self.causal, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def question(self, windows: Tensor, generators: Generators = None) -> tuple[Tensor, Tensor]:
        """What training asks of windows of tokens: inputs, and targets that are IGNORED where nothing is asked.

        A model that hides tokens at random takes the random numbers from one generator per window, if given.
        """
        raise NotImplementedError

    @property
    def is_monarch(self) -> bool:
        """Whether attention and feed-forward have Monarch matrices now; a run may turn them dense."""
        return any(isinstance(module, MonarchLinear) for module in self.modules())

    def hidden(self, tokens: Tensor) -> Tensor:
        """A vector per token (batch, time, width)."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x: Tensor = self.dropout(self.tokens(tokens) + self.positions(positions))
        for block in self.layers:
            x = block(x)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of every token of the vocabulary, by its embedding (..., vocabulary)."""
        return F.linear(hidden, self.tokens.weight[: self.vocabulary])

    def forward(self, tokens: Tensor) -> Tensor:
        return self.logits(self.hidden(tokens))
