"""How long a run is: its epochs, and the optimiser steps of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from lab.errors import UserError, readable
from lab.files import read_table

if TYPE_CHECKING:
    from lab.config import ExperimentConfig
    from lab.run import Run


LONGEST = 10**9
"""Epochs, or steps of one, that no run has."""


@dataclass(frozen=True)
class Plan:
    """How long a run is. It follows from the options, or from a budget, and is recorded in the manifest."""

    epochs: int
    epoch_steps: int | Sequence[int] | None = None
    """Optimiser steps per epoch, or those of each epoch as far as they are settled; None for one pass over the
    training data."""

    @classmethod
    def of(cls, config: "ExperimentConfig") -> Self:
        """What the options say."""
        return cls(config.epochs, config.epoch_steps)

    @classmethod
    def stored(cls, run: "Run") -> Self | None:
        """The plan that the run itself began with, or that of the run whose steps it repeats."""
        path, found = run.folder / "manifest.json", run.manifest.get("plan")
        if found is None and run.config.steps_of is not None:
            path = run.config.steps_of
            found = read_table(path).get("plan")
            if found is None:
                raise UserError(
                    f"--steps-of {run.config.steps_of} is not the manifest.json of a run that was trained."
                )
        if found is None:
            return None
        with readable(path, "its plan is none: restore it"):
            plan = cls(**found)
            lengths = [plan.epochs, *plan.steps(1).lengths]
            if not all(isinstance(length, int) and 0 < length < LONGEST for length in lengths):
                raise ValueError(f"{found}")
            return plan

    def steps(self, per_pass: int) -> "Steps":
        """The same with the number of steps that show every sample once."""
        known = self.epoch_steps or per_pass
        return Steps(self.epochs, [known] if isinstance(known, int) else list(known))


class Steps:
    """The steps of a run, epoch by epoch. Under a budget the lengths of later epochs are settled as it goes.

    Every epoch is the same share of the run, whatever its number of steps: so the schedule of the learning rate is
    continuous although nobody knows yet how many steps there will be.

    >>> steps = Steps(4, [10, 8])
    >>> steps.done(0), steps.done(10), steps.done(14), steps.begin(3), steps.total
    (0.0, 0.25, 0.375, 26, 34)
    """

    def __init__(self, epochs: int, lengths: list[int]) -> None:
        self.epochs, self.lengths = epochs, lengths

    def length(self, epoch: int) -> int:
        """Steps of an epoch; of one that is not settled, those of the last that is."""
        return self.lengths[min(epoch, len(self.lengths) - 1)]

    def begin(self, epoch: int) -> int:
        """Steps before an epoch."""
        known = min(epoch, len(self.lengths))
        return sum(self.lengths[:known]) + (epoch - known) * self.lengths[-1]

    def epoch(self, step: int) -> int:
        """The epoch that a step belongs to, from 0."""
        epoch = 0
        while epoch < self.epochs - 1 and self.begin(epoch + 1) <= step:
            epoch += 1
        return epoch

    @property
    def total(self) -> int:
        """Steps of the whole run, as far as they are known."""
        return self.begin(self.epochs)

    def done(self, step: int) -> float:
        """The share of the run that is over after so many steps."""
        epoch = self.epoch(step)
        length = self.length(epoch)
        return (epoch * length + step - self.begin(epoch)) / (self.epochs * length)
