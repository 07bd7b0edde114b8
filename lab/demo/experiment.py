"""Loss and scores in training."""

from typing import Any

from torch import Tensor

from lab.demo.augment import flipped
from lab.demo.config import TrainConfig
from lab.demo.metrics import relative_error
from lab.experiment import Experiment


class Recovery(Experiment):
    """Squared loss; the score is the relative error of M x on new vectors."""

    config: TrainConfig

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = flipped(*batch) if self.config.flip else batch
        return (self.model(x) - y).square().mean()

    def scores(self, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        x, y = batch
        return {"error": relative_error(self.model(x), y)}

    def header(self) -> dict[str, Any]:
        config = self.config
        return {
            "app": config.app,
            "model": config.model,
            "size": config.size,
            "options": dict(config.options),
        }
