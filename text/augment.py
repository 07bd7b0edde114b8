"""What is asked of a window of tokens: the next ones, or those that were hidden at random."""

from collections.abc import Sequence

import torch
from torch import Tensor

IGNORED = -100
"""The target of a token that nothing is asked about."""
HIDDEN = 0.15
"""Fraction of the tokens that are hidden, as in BERT."""


def next_tokens(window: Tensor) -> tuple[Tensor, Tensor]:
    """Windows (batch, context + 1) as inputs and targets (batch, context): each token is asked for the next one."""
    return window[:, :-1], window[:, 1:]


def hidden_tokens(
    window: Tensor, mask_token: int, generators: Sequence[torch.Generator | None] | None = None
) -> tuple[Tensor, Tensor]:
    """Windows (batch, context + 1) as inputs with hidden tokens, and targets that are IGNORED elsewhere.

    Of the hidden tokens eight in ten are replaced by the mask token, one by a random token and one stays (BERT's
    recipe), so that the model cannot trust what it sees. Every window hides the same number. The random numbers are
    torch's, or those of one generator per window.
    """
    tokens = window[:, :-1]
    context = tokens.shape[1]
    draws = [torch.rand(3, context, generator=each) for each in generators or [None] * len(tokens)]
    order, fate, other = torch.stack(draws, 1).to(tokens.device)
    hidden = order.argsort(1) < max(1, round(HIDDEN * context))
    inputs = torch.where(hidden & (fate < 0.8), mask_token, tokens)
    inputs = torch.where(hidden & (fate >= 0.9), (other * mask_token).long(), inputs)
    return inputs, torch.where(hidden, tokens, IGNORED)
