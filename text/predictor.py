"""A trained model in use."""

from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from lab import weights
from lab.errors import UserError
from text.experiment import held_out_surprise
from text.models import build
from text.models.parts.language_model import LanguageModel
from text.vocabulary import Vocabulary, from_header


class Predictor:
    """Scores text, and continues it where the model predicts the next token."""

    def __init__(self, model: LanguageModel, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary = model.eval(), vocabulary

    @property
    def num_parameters(self) -> int:
        """Real numbers in the model."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @torch.inference_mode()
    def surprise(self, windows: Dataset[tuple[Tensor, int]], batch_size: int = 32) -> Tensor:
        """The mean -log p, in nats per token, of each window of tokens."""
        return torch.cat([held_out_surprise(self.model, batch) for batch in DataLoader(windows, batch_size)])

    @torch.inference_mode()
    def continued(self, text: str, tokens: int = 200, temperature: float = 0.8, seed: int = 0) -> str:
        """The text and so many further tokens, drawn at random; at temperature 0 always the likeliest."""
        if not self.model.causal:
            raise UserError("this model fills gaps; only one that predicts the next token continues a text.")
        if not text:
            raise UserError("there is no text to continue; give at least one character.")
        generator = torch.Generator().manual_seed(seed)
        sequence = self.vocabulary.encode(text).tolist()
        for _ in range(tokens):
            (logits,) = self.model(torch.tensor([sequence[-self.model.context :]]))[:, -1]
            if temperature > 0:
                chances = (logits / temperature).softmax(0)
                sequence.append(int(torch.multinomial(chances, 1, generator=generator)))
            else:
                sequence.append(int(logits.argmax()))
        return self.vocabulary.decode(sequence)


def load(path: str | Path) -> Predictor:
    """The predictor that a weights file holds."""
    file = weights.load(path, app="text")
    model = file.rebuilt(
        lambda header: build(
            header["model"],
            from_header(header["vocabulary"]).size,
            header["context"],
            adapter=header.get("adapter"),  # version 0.1 had none
            **header["options"],
        ),
        path,
    )
    return Predictor(model, from_header(file.header["vocabulary"]))
