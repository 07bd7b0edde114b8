"""A budget of minutes as a number of steps, so that the learning rate can follow a schedule.

A few steps of a copy of the experiment give its pace; `fitting` turns pace and minutes into the `Plan` of the run.
"""

import copy
import statistics
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from lab.clock import busy
from lab.console import say
from lab.experiment import Experiment
from lab.trainer import Collate, Plan

WARM_UP, STEPS = 3, 12
"""Steps of a trial that do not count, and the fewest that do."""
TRIAL = 0.03
"""Length of a trial as a fraction of the budget: a second or two on a shared machine tell little."""
VALIDATIONS = 8
"""Epochs of a run with a budget, each of which ends with a validation, unless it is told otherwise."""


@dataclass(frozen=True)
class Pace:
    """Seconds that an optimiser step and a validation take."""

    step: float
    validation: float = 0.0

    def then(self, later: "Pace", share: float) -> "Pace":
        """The mean pace of a run that keeps this one for a share of its steps and another one for the rest.

        >>> Pace(1.0, 4.0).then(Pace(2.0, 6.0), share=0.75)
        Pace(step=1.25, validation=4.5)
        """
        return Pace(
            share * self.step + (1 - share) * later.step,
            share * self.validation + (1 - share) * later.validation,
        )


def measure(
    experiment: Experiment,
    train: Dataset[Any],
    validation: Dataset[Any] | None = None,
    *,
    minutes: float,
    collate: Collate | None = None,
) -> Pace:
    """The pace of an experiment, from a trial of a copy that is thrown away, a few per cent of `minutes` long.

    Without validation data a validation counts as taking no time.
    """
    experiment = copy.deepcopy(experiment)
    batch_size, clip = experiment.config.batch_size, experiment.config.grad_clip
    half = experiment.config.precision == "bf16-mixed"
    optimizer = torch.optim.AdamW(list(experiment.parameter_groups()), fused=True)
    for group in optimizer.param_groups:
        group["lr"] = 0.0  # the same work, but the weights cannot run away
    batch = next(iter(DataLoader(train, batch_size, collate_fn=collate)))
    times: list[float] = []
    while len(times) < WARM_UP + STEPS or sum(times) < 60 * TRIAL * minutes:
        begun = busy(experiment.device)
        with torch.autocast(experiment.device.type, torch.bfloat16, enabled=half):
            loss = experiment.training_step(batch, 0)
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(experiment.parameters(), clip)
        optimizer.step()
        times.append(busy(experiment.device) - begun)
    if validation is None:
        return Pace(statistics.median(times[WARM_UP:]))
    begun = busy(experiment.device)
    with torch.no_grad():
        for batch in DataLoader(validation, batch_size, collate_fn=collate):
            experiment.scores(batch)
    return Pace(statistics.median(times[WARM_UP:]), busy(experiment.device) - begun)


def fitting(minutes: float, pace: Pace, epochs: int | None = None) -> Plan:
    """The epochs, and the steps of each, that fit into `minutes`.

    The epochs are cut to measure: with whole passes over the data, a slow model would lose up to one of its few.
    Where their number is not given, at most one tenth of the time goes into validations, and there are no more of
    them than are needed to see the best.

    >>> fitting(1.0, Pace(step=0.5, validation=2.0))
    0.500 s per step, 2.0 s per validation: 3 epochs of 36 steps in 1 minutes
    Plan(epochs=3, epoch_steps=36)
    """
    seconds = 60 * minutes
    if epochs is None:
        most = VALIDATIONS if pace.validation == 0 else int(0.1 * seconds / pace.validation)
        epochs = min(max(1, most), VALIDATIONS)
    plan = Plan(epochs, max(1, int((seconds / epochs - pace.validation) / pace.step)))
    say(
        f"{pace.step:.3f} s per step, {pace.validation:.1f} s per validation: {plan.epochs} epochs of "
        f"{plan.epoch_steps} steps in {minutes:g} minutes"
    )
    return plan
