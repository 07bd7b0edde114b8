"""What happens around the training steps: seeds, metrics, best weights, progress."""

import csv
import io
import math
import time
from typing import Any

import lightning.pytorch as pl
import torch

from lab import weights
from lab.clock import busy
from lab.experiment import Experiment
from lab.files import write_text
from lab.loader import mix
from lab.progress import Progress
from lab.run import Run


class StepSeeds(pl.Callback):
    """Make each step's randomness a function of seed, step and process, so that a resumed run repeats it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: pl.Trainer, module: pl.LightningModule, *batch: Any) -> None:
        torch.manual_seed(mix(self.seed, trainer.global_step, trainer.global_rank))


class Metrics(pl.Callback):
    """One row per epoch in metrics.csv: epoch, step, seconds, learning rate, mean loss, validation scores.

    `seconds` is wall time; `work_seconds` is the time that the run itself worked, whatever else ran on the machine, and
    `train_seconds` that without validations: the clocks for budgets and for comparing speeds.
    The rows travel in the checkpoint, so a resumed run rewrites the file as it was at the checkpoint.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.rows: list[dict[str, float]] = []
        self._loss = torch.zeros(())
        self._steps = 0
        self._spent = 0.0
        self._begun = time.monotonic()
        self._trained = self._worked = 0.0
        self._training_since: float | None = None

    def state_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "loss": float(self._loss),
            "steps": self._steps,
            "spent": self._spent + time.monotonic() - self._begun,
            "trained": self._trained + self._since(),
            "worked": self._worked + busy(self._device) - self._working_since,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows, self._steps, self._spent = list(state["rows"]), state["steps"], state["spent"]
        self._trained, self._worked = state.get("trained", 0.0), state.get("worked", 0.0)
        self._loss = torch.tensor(state["loss"])

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._begun = time.monotonic()
        self._loss = self._loss.to(module.device)
        self._device = module.device
        self._working_since = busy(self._device)

    def on_train_epoch_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._training_since = busy(self._device)

    def on_validation_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._trained, self._training_since = self._trained + self._since(), None

    def _since(self) -> float:
        return 0.0 if self._training_since is None else busy(self._device) - self._training_since

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: Any, *batch: Any
    ) -> None:
        self._loss += outputs["loss"].detach()
        self._steps += 1

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        scores = {name: float(value) for name, value in trainer.callback_metrics.items()}
        loss = float(trainer.strategy.reduce(self._loss / max(self._steps, 1), reduce_op="mean"))
        row = {
            "epoch": trainer.current_epoch + 1,
            "step": trainer.global_step,
            "seconds": round(self._spent + time.monotonic() - self._begun, 2),
            "work_seconds": round(self._worked + busy(self._device) - self._working_since, 3),
            "train_seconds": round(self._trained, 3),
            "lr": trainer.optimizers[0].param_groups[0]["lr"],
            "loss": loss,
            **scores,
        }
        self.rows.append(row)
        self._loss.zero_()
        self._steps = 0
        logged = {key: value for key, value in row.items() if key != "epoch"}
        for logger in trainer.loggers:
            logger.log_metrics(logged, step=trainer.global_step)
        if trainer.is_global_zero:
            self._write()

    def _write(self) -> None:
        text = io.StringIO()
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_text(self.run.folder / "metrics.csv", text.getvalue())


class BestWeights(pl.Callback):
    """Write weights.safetensors whenever the monitored score improves."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.best: dict[str, float] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        best = dict(state["best"])
        if not all(isinstance(value, int | float) for value in best.values()):
            raise TypeError("the best score is no number")
        self.best = best

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        assert isinstance(module, Experiment)
        score = float(trainer.callback_metrics.get(module.monitor, math.nan))
        sign = 1 if module.better == "lower" else -1
        before = self.best.get(module.monitor, sign * math.inf)
        if sign * score >= sign * before or math.isnan(score):
            return
        self.best = {module.monitor: score, "epoch": trainer.current_epoch + 1}
        if trainer.is_global_zero:
            weights.save(self.run.weights, module.model, {**module.header(), "best": self.best})


class ProgressReport(pl.Callback):
    """The bar over all steps of the run, with loss, score and time left."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        assert isinstance(module, Experiment)
        self._progress = Progress(module.steps.total, "training", unit="step")
        self._progress.__enter__()
        self._progress.skip(trainer.global_step)

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: Any, *batch: Any
    ) -> None:
        if self._progress is not None and isinstance(module, Experiment):
            epoch = f"{trainer.current_epoch + 1}/{trainer.max_epochs}"
            self._progress.total = module.steps.total  # a budget settles it on the way
            self._progress.advance(1, epoch=epoch, loss=float(outputs["loss"]))

    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        if self._progress is not None and isinstance(module, Experiment):
            score = trainer.callback_metrics.get(module.monitor)
            if score is not None:
                self._progress.advance(0, **{module.monitor: float(score)})

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._close()

    def on_exception(self, trainer: pl.Trainer, module: pl.LightningModule, exception: BaseException) -> None:
        self._close(exception)

    def _close(self, exception: BaseException | None = None) -> None:
        if self._progress is not None:
            self._progress.__exit__(type(exception) if exception else None)
            self._progress = None
