"""A model in training, as Lightning sees it: loss, validation, optimiser, schedule."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal

import lightning.pytorch as pl
import torch
from torch import Tensor, nn

from lab.config import ExperimentConfig
from lab.errors import UserError


class Experiment(pl.LightningModule, ABC):
    """Train `model` with the options in `config`.

    An application derives from this and says three things: `loss(batch)`, `scores(batch)` (validation
    metrics, averaged over samples; `monitor` names the one that decides which weights are best) and
    `header()` (what rebuilds the model). `parameter_groups` may give some parameters their own options.
    """

    monitor: str = "error"
    better: Literal["lower", "higher"] = "lower"

    def __init__(self, model: nn.Module, config: ExperimentConfig) -> None:
        super().__init__()
        self.model, self.config = model, config
        # Optimiser steps of the whole run and of an epoch; `fit` sets them. (Asking Lightning's Trainer for them would
        # set the loaders up before a checkpoint is restored, and they would then begin their epoch anew.)
        self.total_steps = self.epoch_steps = 1

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """The training loss of a batch, a scalar that is a mean over its samples."""

    @abstractmethod
    def scores(self, batch: Any) -> dict[str, Tensor]:
        """Validation metrics of a batch: for each name one value per sample."""

    @abstractmethod
    def header(self) -> dict[str, Any]:
        """JSON-like values from which the application rebuilds the model."""

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Parameter groups for the optimiser; one group of everything unless overridden."""
        return [{"params": [parameter for parameter in self.parameters() if parameter.requires_grad]}]

    def training_step(self, batch: Any, batch_index: int) -> Tensor:
        loss = self.loss(batch)
        # Looked at before the gradient is taken, so that the weights on disk and in memory stay good.
        if not torch.isfinite(loss):
            raise UserError(
                f"the loss became {loss.item()} at step {self.global_step} (epoch {self.current_epoch}); the last "
                "good checkpoint is kept. Lower --lr, raise --warmup-steps or set --grad-clip, and begin a new run."
            )
        return loss

    def validation_step(self, batch: Any, batch_index: int) -> None:
        for name, values in self.scores(batch).items():
            self.log(name, values.mean(), batch_size=len(values), on_epoch=True, sync_dist=True)

    def configure_optimizers(self) -> Any:
        config = self.config
        # Fused AdamW is one kernel per parameter group; factors are stored real, so it always applies.
        optimizer = torch.optim.AdamW(
            list(self.parameter_groups()), lr=config.lr, weight_decay=config.weight_decay, fused=True
        )
        schedule = learning_rate_schedule(optimizer, config, self.total_steps, self.epoch_steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def learning_rate_schedule(
    optimizer: torch.optim.Optimizer, config: ExperimentConfig, total_steps: int, epoch_steps: int
) -> torch.optim.lr_scheduler.LRScheduler:
    """The learning rate over `total_steps` optimiser steps, relative to each group's peak."""
    schedulers = torch.optim.lr_scheduler
    if config.schedule == "one-cycle":
        peaks = [group["lr"] for group in optimizer.param_groups]
        return schedulers.OneCycleLR(optimizer, max_lr=peaks, total_steps=total_steps, cycle_momentum=False)
    warmup = min(config.warmup_steps, total_steps)

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        if config.schedule == "cosine":
            progress = (step - warmup) / max(total_steps - warmup, 1)
            return 0.5 * (
                1 + float(torch.cos(torch.tensor(torch.pi * min(progress, 1.0), dtype=torch.float64)))
            )
        if config.schedule == "step":
            return float(0.5 ** (step // (config.step_size * epoch_steps)))
        return 1.0

    return schedulers.LambdaLR(optimizer, factor)
