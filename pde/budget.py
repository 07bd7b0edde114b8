"""So many minutes of training, expressed in epochs, so that the learning rate can follow a schedule."""

import copy
import statistics
import time
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from lab.console import say
from lab.paths import runs_dir
from pde.config import TrainConfig
from pde.recipes import Training

WARM_UP, STEPS = 3, 12
"""Steps of a trial that do not count, and the fewest that do."""
TRIAL = 0.03
"""Length of a trial as a fraction of the budget: a second or two of a shared machine tell little."""
VALIDATIONS = 8
"""Epochs of a run with a budget, each of which ends with a validation."""


def choose_epochs(
    config: TrainConfig, training: Training, data: Dataset[Any], validation: Dataset[Any]
) -> None:
    """Set the epochs and their steps to what fits into `config.minutes`; a run that is resumed keeps its own.

    The epochs are cut to measure: with whole passes over the data, a slow model would lose up to one of its few.
    """
    stored = _stored(config)
    if stored is not None:
        config.epochs, config.epoch_steps = stored["epochs"], stored.get("epoch_steps")
        return
    seconds = 60 * config.minutes  # type: ignore[operator]
    step, check = _seconds(training, data, validation, config.batch_size, TRIAL * seconds)
    # At most one tenth of the time for validations, and no more of them than are needed to see the best.
    config.epochs = min(max(1, int(0.1 * seconds / check)), VALIDATIONS)
    config.epoch_steps = max(1, int((seconds / config.epochs - check) / step))
    say(
        f"{step:.3f} s a step, {check:.1f} s a validation: {config.epochs} epochs of {config.epoch_steps} steps "
        f"in {config.minutes:g} minutes"
    )


def _stored(config: TrainConfig) -> dict[str, Any] | None:
    import yaml

    path = runs_dir() / config.app / (config.name or "") / "config.yaml"
    if not (config.resume and config.name and path.is_file()):
        return None
    options: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return options


def _seconds(
    training: Training, data: Dataset[Any], validation: Dataset[Any], batch_size: int, trial: float
) -> tuple[float, float]:
    """Time of one training step and of one validation, on a copy that is thrown away; `trial` seconds long."""
    training = copy.deepcopy(training)
    optimizer = torch.optim.AdamW(list(training.parameter_groups()), lr=1e-6, fused=True)
    batches = iter(DataLoader(data, batch_size, shuffle=False))
    batch = next(batches)
    times: list[float] = []
    while len(times) < WARM_UP + STEPS or sum(times) < trial:
        begun = _busy()
        loss = training.training_step(batch, 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(_busy() - begun)
    begun = _busy()
    with torch.no_grad():
        for batch in DataLoader(validation, batch_size):
            training.scores(batch)
    return statistics.median(times[WARM_UP:]), _busy() - begun


def _busy() -> float:
    """Processor time per thread: a budget that other work on the machine does not change."""
    return time.process_time() / torch.get_num_threads()
