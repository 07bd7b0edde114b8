"""So many minutes, in epochs and steps."""

from pathlib import Path

import pytest
import torch

from lab import budget
from lab.budget import Pace, fitting, measure
from lab.demo.config import TrainConfig
from lab.demo.experiment import Recovery
from lab.demo.models import build
from lab.demo.sources import samples


@pytest.mark.parametrize("pace", [Pace(0.08, 0.5), Pace(0.9, 2.0), Pace(3.7, 11.0), Pace(0.2)])
def test_a_slow_model_gets_its_whole_time_as_a_quick_one_does(pace: Pace) -> None:
    plan = fitting(4.0, pace)
    assert plan.epoch_steps is not None
    spent = plan.epochs * (plan.epoch_steps * pace.step + pace.validation)
    assert 240 - plan.epochs * pace.step <= spent <= 240
    assert plan.epochs * pace.validation <= 24


def test_the_number_of_epochs_may_be_given() -> None:
    plan = fitting(1.0, Pace(0.5), epochs=10)
    assert (plan.epochs, plan.epoch_steps) == (10, 12)


def test_a_trial_leaves_the_experiment_as_it_was(monkeypatch: pytest.MonkeyPatch, workplace: Path) -> None:
    monkeypatch.setattr(budget, "TRIAL", 0.0)
    config = TrainConfig(size=16, batch_size=4, grad_clip=1.0)
    experiment, parts = Recovery(build("dense", 16), config), samples(config, seed=0)
    before = {name: value.clone() for name, value in experiment.state_dict().items()}
    pace = measure(experiment, parts.train, parts.validation, minutes=1.0)
    assert pace.step > 0
    assert pace.validation > 0
    assert all(torch.equal(before[name], value) for name, value in experiment.state_dict().items())
