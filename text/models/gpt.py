"""GPT-2: predicts the next token from those before it."""

from torch import Tensor

from text.augment import next_tokens
from text.models.parts.language_model import Generators, LanguageModel


class GPT(LanguageModel):
    """Pre-norm blocks with causal attention, learned positions, output tied to the embedding (Radford et al., 2019)."""

    causal = True

    def question(self, windows: Tensor, generators: Generators = None) -> tuple[Tensor, Tensor]:
        return next_tokens(windows)
