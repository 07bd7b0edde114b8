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


def choose_epochs(
    config: TrainConfig, training: Training, data: Dataset[Any], validation: Dataset[Any]
) -> None:
    """Set `config.epochs` to what fits into `config.minutes`; a run that is resumed keeps its own number."""
    stored = _stored_epochs(config)
    if stored is not None:
        config.epochs = stored
        return
    step, check = _seconds(training, data, validation, config.batch_size)
    steps = max(len(data) // config.batch_size, 1)  # type: ignore[arg-type]
    config.epochs = max(1, int(60 * config.minutes / (steps * step + check)))  # type: ignore[operator]
    say(
        f"{step:.3f} s a step, {check:.1f} s a validation: {config.epochs} epochs in {config.minutes:g} minutes"
    )


def _stored_epochs(config: TrainConfig) -> int | None:
    import yaml

    path = runs_dir() / config.app / (config.name or "") / "config.yaml"
    if not (config.resume and config.name and path.is_file()):
        return None
    return int(yaml.safe_load(path.read_text(encoding="utf-8"))["epochs"])


def _seconds(
    training: Training, data: Dataset[Any], validation: Dataset[Any], batch_size: int
) -> tuple[float, float]:
    """Time of one training step and of one validation, on a copy that is thrown away."""
    training = copy.deepcopy(training)
    optimizer = torch.optim.AdamW(list(training.parameter_groups()), lr=1e-6)
    batches = iter(DataLoader(data, batch_size, shuffle=False))
    batch = next(batches)
    times = []
    for _ in range(WARM_UP + STEPS):
        begun = _busy()
        loss = training.loss(batch)
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
