"""BERT: predicts hidden tokens from all others."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from text.augment import hidden_tokens
from text.models.parts.language_model import Generators, LanguageModel


class BERT(LanguageModel):
    """Attention both ways and a mask token (Devlin et al., 2018), with pre-norm blocks, which train more stably.

    The token `mask_token`, beyond the vocabulary, stands for a hidden one; it is read but never predicted.
    """

    causal = False

    def __init__(self, vocabulary: int, context: int, size: str = "mini", **options: Any) -> None:
        super().__init__(vocabulary, context, size, extra_tokens=1, **options)
        self.mask_token = vocabulary
        width = self.norm.normalized_shape[0]
        self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def question(self, windows: Tensor, generators: Generators = None) -> tuple[Tensor, Tensor]:
        return hidden_tokens(windows, self.mask_token, generators)

    def logits(self, hidden: Tensor) -> Tensor:
        transformed = self.transform_norm(F.gelu(self.transform(hidden), approximate="tanh"))
        return super().logits(transformed) + self.bias
