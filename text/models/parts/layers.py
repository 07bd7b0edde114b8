"""The linear layers of a model: dense, or Monarch with so many blocks. Both start with the same output variance."""

from math import sqrt

import torch
from torch import nn

from monarch_core import MonarchLinear

Layer = nn.Linear | MonarchLinear


def linear(in_features: int, out_features: int, blocks: int | None, gain: float = 1.0) -> Layer:
    """A layer that starts with bias 0 and with weights `gain` times those of nn.Linear; dense if `blocks` is None."""
    layer: Layer
    if blocks is None:
        layer = nn.Linear(in_features, out_features)
    else:
        layer = MonarchLinear(in_features, out_features, blocks=blocks)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    with torch.no_grad():
        if isinstance(layer, MonarchLinear):
            # An equal share for each factor: their learning rates assume factors of equal scale.
            layer.operator.R.mul_(sqrt(gain))
            layer.operator.L.mul_(sqrt(gain))
        else:
            layer.weight.mul_(gain)
    return layer
