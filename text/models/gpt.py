"""GPT-2: predicts the next token from those before it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from text.augment import next_tokens
from text.models.parts.language_model import LanguageModel


class GPT(LanguageModel):
    """Pre-norm blocks with causal attention, learned positions, output tied to the embedding (Radford et al., 2019)."""

    causal = True

    def question(
        self, windows: Tensor, generators: Sequence[torch.Generator] | None = None
    ) -> tuple[Tensor, Tensor]:
        return next_tokens(windows)
