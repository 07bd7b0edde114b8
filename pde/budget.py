"""Minutes of training expressed in epochs, so that the learning rate can follow a schedule."""

import copy
import statistics
import time
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from lab.console import say
from lab.trainer import Plan
from pde.config import TrainConfig
from pde.experiment import Training

WARM_UP, STEPS = 3, 12
"""Steps of a trial that do not count, and the fewest that do."""
TRIAL = 0.03
"""Length of a trial as a fraction of the budget: a second or two of a shared machine tell little."""
VALIDATIONS = 8
"""Epochs of a run with a budget; each ends with a validation."""


def plan(config: TrainConfig, training: Training, data: Dataset[Any], validation: Dataset[Any]) -> Plan:
    """The epochs, and their steps, that fit into `config.minutes`.

    The epochs are cut to measure: with whole passes over the data, a slow model would lose up to one of its few.
    """
    assert config.minutes is not None
    seconds = 60 * config.minutes
    with torch.autocast("cpu", torch.bfloat16, enabled=config.precision == "bf16-mixed"):
        step, check = _seconds(training, data, validation, config.batch_size, TRIAL * seconds)
    # At most one tenth of the time for validations, and no more of them than are needed to see the best.
    epochs = min(max(1, int(0.1 * seconds / check)), VALIDATIONS)
    chosen = Plan(epochs, max(1, int((seconds / epochs - check) / step)))
    say(
        f"{step:.3f} s per step, {check:.1f} s per validation: {chosen.epochs} epochs of {chosen.epoch_steps} steps "
        f"in {config.minutes:g} minutes"
    )
    return chosen


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
