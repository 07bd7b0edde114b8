"""A model in training, as Lightning sees it: loss, validation, optimiser, schedule."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal

import lightning.pytorch as pl
import torch
from torch import Tensor, nn

from lab.config import ExperimentConfig
from lab.errors import UserError
from lab.plan import Steps

ONE_CYCLE_PEAK = 0.3
"""The share of a run after which the schedule one-cycle falls."""


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
        # `fit` sets the steps of the run. (Asking Lightning's Trainer for them would set the loaders up before a
        # checkpoint is restored, and they would then begin their epoch anew.)
        self.steps = Steps(1, [1])

    @property
    def done(self) -> float:
        """The share of the run that is over."""
        return self.steps.done(self.global_step)

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
        schedule = learning_rate_schedule(optimizer, config, self.steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def learning_rate_schedule(
    optimizer: torch.optim.Optimizer, config: ExperimentConfig, steps: Steps
) -> torch.optim.lr_scheduler.LRScheduler:
    """The learning rate after each optimiser step, relative to each group's peak.

    It depends on the share of the run that is over, so that a run whose length is settled on the way has one, too.
    """

    def factor(step: int) -> float:
        done = steps.done(step)
        if config.schedule == "one-cycle":  # as published: from 1/25 up to the peak, then down to 1/250,000
            rising = done < ONE_CYCLE_PEAK
            share = done / ONE_CYCLE_PEAK if rising else (done - ONE_CYCLE_PEAK) / (1 - ONE_CYCLE_PEAK)
            first, last = (1 / 25, 1.0) if rising else (1.0, 1 / 250_000)
            return last + (first - last) * _falling(share)
        warmup = min(config.warmup_steps, steps.total)
        if step < warmup:
            return (step + 1) / (warmup + 1)
        if config.schedule == "cosine":
            begun = steps.done(warmup)
            return _falling((done - begun) / max(1 - begun, 1e-9))
        if config.schedule == "step":
            return float(0.5 ** (steps.epoch(step) // config.step_size))
        return 1.0

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def _falling(share: float) -> float:
    """Half a cosine, from 1 to 0."""
    return 0.5 * (1 + math.cos(math.pi * min(share, 1.0)))
