"""A budget of minutes as a number of steps, so that the learning rate can follow a schedule.

A few steps of a copy of the experiment give a first idea of its pace, which sets the length of the first epoch. The
run itself tells how long that took; so the length of each further epoch is settled at the end of the one before it,
from the time that is left. What was settled is recorded in the run's manifest before the epoch begins: a run that is
resumed, or repeated with `--steps-of`, takes the same steps.
"""

import copy
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, Dataset

from lab.callbacks import Metrics
from lab.clock import busy
from lab.console import say
from lab.experiment import Experiment
from lab.loader import in_order
from lab.plan import Plan
from lab.run import Run

WARM_UP, STEPS = 2, 5
"""Steps of a trial that do not count, and those that do."""
EPOCHS = 8
"""Epochs of a run with a budget, each of which ends with a validation, unless it is told otherwise."""


@dataclass(frozen=True)
class Pace:
    """Seconds that an optimiser step and a validation take; where steps take another time later on, since when."""

    step: float
    validation: float = 0.0
    later: Sequence[Sequence[float]] = ()
    """Shares of the run, growing, and the seconds of a step once such a share is over."""

    def then(self, later: "Pace", since: float) -> "Pace":
        """This pace until a share of the run is over, then that of another."""
        return replace(self, later=[*self.later, [since, later.step]])

    def between(self, begin: float, end: float) -> float:
        """The mean seconds of a step between two shares of the run.

        >>> pace = Pace(1.0).then(Pace(2.0), since=0.375).then(Pace(4.0), since=0.5)
        >>> pace.between(0.25, 0.5), pace.between(0.25, 0.75)
        (1.5, 2.75)
        """
        found, step, reached = 0.0, self.step, begin
        for since, seconds in [*self.later, (end, self.step)]:
            until = min(max(since, reached), end)
            found, step, reached = found + (until - reached) * step, seconds, until
        return found / (end - begin)


@dataclass(frozen=True)
class Budget:
    """So many minutes of work for a run: processor time per thread on a CPU, wall time elsewhere.

    Attributes:
        measure: makes the trial.
        epochs: their number, where it is given.
        validations: whether the time of validations counts.
    """

    minutes: float
    measure: Callable[[], Pace]
    epochs: int | None = None
    validations: bool = True

    @classmethod
    def of(cls, minutes: float | None, measure: Callable[[], Pace], **options: Any) -> "Budget | None":
        """The budget that --minutes asks for; None without."""
        return None if minutes is None else cls(minutes, measure, **options)

    def pace(self, run: Run) -> Pace:
        """The pace of the trial, which a resumed run does not make again."""
        found, known = run.manifest.get("pace", {}), {entry.name for entry in fields(Pace)}
        if found.keys() != known:  # there is none, or one that an older version wrote
            found = asdict(self.measure())
        run.update(pace=found)
        return Pace(**found)

    def first(self, pace: Pace) -> Plan:
        """The epochs, and the steps of the first of them.

        Where their number is not given, at most one tenth of the time goes into validations, and there are no more of
        them than are needed to see the best. There are two at least, for the second to make up for the first.

        >>> Budget(1.0, lambda: Pace(0.5)).first(Pace(step=0.5, validation=2.0))
        0.500 s per step, 2.0 s per validation: 3 epochs of about 36 steps in 1 minutes
        Plan(epochs=3, epoch_steps=[36])
        """
        epochs = self.epochs
        if epochs is None:
            most = int(6 * self.minutes / pace.validation) if pace.validation else EPOCHS
            epochs = min(max(2, most), EPOCHS)
        length = _fitting(60 * self.minutes / epochs - pace.validation, pace.between(0, 1 / epochs))
        say(
            f"{pace.step:.3f} s per step, {pace.validation:.1f} s per validation: {epochs} epochs of "
            f"about {length} steps in {self.minutes:g} minutes"
        )
        return Plan(epochs, [length])

    def next(self, plan: Plan, pace: Pace, rows: list[dict[str, float]]) -> int:
        """The steps of the epoch that comes next, from the rows of metrics.csv so far.

        The time left is shared out evenly among the epochs left. Steps take what the trial says of that part of the
        run, times what those of the last epoch took over what it said of them.
        """
        assert isinstance(plan.epoch_steps, list)
        over, left = len(rows), plan.epochs - len(rows)
        before = rows[-2] if over > 1 else {"train_seconds": 0.0, "work_seconds": 0.0}
        training, working = (rows[-1][key] - before[key] for key in ("train_seconds", "work_seconds"))
        spent = rows[-1]["work_seconds" if self.validations else "train_seconds"]
        validation = working - training if self.validations else 0.0
        stretches = [
            pace.between(epoch / plan.epochs, (epoch + 1) / plan.epochs) for epoch in (over - 1, over)
        ]
        step = training / plan.epoch_steps[over - 1] * stretches[1] / stretches[0]
        return _fitting((60 * self.minutes - spent) / left - validation, step)


class Settle(pl.Callback):
    """Settle the length of each epoch at the end of the one before it, unless the manifest has it already."""

    def __init__(self, run: Run, budget: Budget, metrics: Metrics) -> None:
        self.run, self.budget, self.metrics = run, budget, metrics

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        assert isinstance(module, Experiment)
        lengths, over = module.steps.lengths, len(self.metrics.rows)
        if len(lengths) <= over < module.steps.epochs:
            plan = Plan(module.steps.epochs, lengths)
            length = self.budget.next(plan, self.budget.pace(self.run), self.metrics.rows)
            lengths.append(trainer.strategy.broadcast(length))
            total = {"total": module.steps.total}
            self.run.update(plan=asdict(plan), steps=self.run.manifest.get("steps", {}) | total)


def _fitting(seconds: float, step: float) -> int:
    return max(1, round(seconds / max(step, 1e-9)))


def measure(
    experiment: Experiment,
    train: Dataset[Any],
    validation: Dataset[Any] | None = None,
    *,
    collate: Callable[[list[Any]], Any] | None = None,
) -> Pace:
    """The pace of an experiment, from a trial of a copy that is thrown away.

    Without validation data a validation counts as taking no time.
    """
    experiment = copy.deepcopy(experiment)
    batch_size, clip = experiment.config.batch_size, experiment.config.grad_clip
    half = experiment.config.precision == "bf16-mixed"
    optimizer = torch.optim.AdamW(list(experiment.parameter_groups()), fused=True)
    for group in optimizer.param_groups:
        group["lr"] = 0.0  # the same work, but the weights cannot run away
    batch = next(iter(DataLoader(train, batch_sampler=in_order(train, batch_size), collate_fn=collate)))
    times: list[float] = []
    for _ in range(WARM_UP + STEPS):
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
        for batch in DataLoader(
            validation, batch_sampler=in_order(validation, batch_size), collate_fn=collate
        ):
            experiment.scores(batch)
    return Pace(statistics.median(times[WARM_UP:]), busy(experiment.device) - begun)
