"""Loss and scores in training."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from lab.experiment import Experiment
from lab.loader import mix
from monarch_core import param_groups
from text.config import TrainConfig
from text.metrics import bits_per_byte, surprise
from text.models.parts.language_model import LanguageModel
from text.vocabulary import Vocabulary

Batch = tuple[Tensor, Tensor]
"""Windows of tokens (batch, context + 1) and their numbers (batch,)."""


class LanguageModelling(Experiment):
    """The loss is -log p of the tokens that are asked for, in nats; the score is that in bits per byte of text."""

    model: LanguageModel
    config: TrainConfig
    monitor = "bits_per_byte"

    def __init__(
        self, model: LanguageModel, config: TrainConfig, vocabulary: Vocabulary, bytes_per_token: float
    ) -> None:
        super().__init__(model, config)
        self.vocabulary, self.bytes_per_token = vocabulary, bytes_per_token

    def loss(self, batch: Batch) -> Tensor:
        windows, _ = batch
        return surprise(self.model, *self.model.question(windows)).mean()

    def scores(self, batch: Batch) -> dict[str, Tensor]:
        return {"bits_per_byte": bits_per_byte(held_out_surprise(self.model, batch), self.bytes_per_token)}

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """One learning rate serves dense and Monarch: the factors' own follow from it (Compute Better Spent)."""
        return param_groups(self.model, self.config.peak_lr, self.config.weight_decay)

    def header(self) -> dict[str, Any]:
        config, model = self.config, self.model
        # The matrices as they are now: a run may turn them from Monarch to dense.
        blocks = config.options["blocks"] if model.is_monarch else None
        return {
            "app": config.app,
            "model": config.model,
            "options": {**config.options, "blocks": blocks},
            "adapter": config.adapter,
            "context": config.context,
            "vocabulary": self.vocabulary.header(),
        }


def held_out_surprise(model: LanguageModel, batch: Batch) -> Tensor:
    """The mean -log p of each sequence; what is hidden in a sequence depends on its number alone."""
    windows, numbers = batch
    generators = [torch.Generator().manual_seed(mix(number)) for number in numbers.tolist()]
    return surprise(model, *model.question(windows, generators))
