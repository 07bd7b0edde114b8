"""How badly a text was predicted."""

from math import log

import torch
from torch import Tensor
from torch.nn import functional as F

from text.augment import IGNORED
from text.models.parts.language_model import LanguageModel


def surprise(model: LanguageModel, inputs: Tensor, targets: Tensor) -> Tensor:
    """-log p of the tokens that are asked for, in nats: the mean of each sequence (batch,).

    The output layer works only on the tokens that are asked for, of which every sequence has the same number.
    """
    asked = targets != IGNORED
    logits = model.logits(model.hidden(inputs)[asked])
    return F.cross_entropy(logits, targets[asked], reduction="none").unflatten(0, (len(inputs), -1)).mean(1)


def bits_per_byte(surprise: Tensor, bytes_per_token: float) -> Tensor:
    """Nats per token as bits per byte of text.

    >>> bits_per_byte(torch.tensor([log(256.0)]), bytes_per_token=1.0)
    tensor([8.])
    """
    return surprise / (log(2) * bytes_per_token)


def perplexity(bits: Tensor, bytes_per_token: float) -> Tensor:
    """exp(nats per token) from bits per byte.

    >>> perplexity(torch.tensor([2.0]), bytes_per_token=3.0)
    tensor([64.])
    """
    return torch.exp2(bits * bytes_per_token)
