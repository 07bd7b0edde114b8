"""A trained model in use."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lab import weights
from lab.demo.models import build


class Predictor:
    """Predicts M x for vectors x (..., size)."""

    def __init__(self, model: nn.Module, size: int) -> None:
        self.model, self.size = model.eval(), size

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
    file = weights.load(path, app="demo")
    return Predictor(file.rebuilt(_from_header, path), file.header["size"])


def _from_header(header: dict[str, Any]) -> nn.Module:
    return build(header["model"], header["size"], **header["options"])
