"""A trained model in use."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lab import weights
from lab.demo.models import build


class Predictor:
    """Predicts M x for vectors x (..., size)."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model.eval()

    @property
    def num_parameters(self) -> int:
        """Real numbers that were trained."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @torch.inference_mode()
    def predict(self, x: Tensor) -> Tensor:
        """M x."""
        return self.model(x)


def load(path: str | Path) -> Predictor:
    """The predictor that a weights file holds."""
    return Predictor(weights.load(path, app="demo").rebuilt(_from_header, path))


def _from_header(header: dict[str, Any]) -> nn.Module:
    return build(header["model"], header["size"], **header["options"])
