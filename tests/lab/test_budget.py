"""So many minutes, in epochs and steps."""

from pathlib import Path

import pytest
import torch

from lab.budget import Budget, Pace, measure
from lab.demo.config import TrainConfig
from lab.demo.experiment import Recovery
from lab.demo.models import build
from lab.demo.sources import samples
from lab.plan import Plan


def budget(minutes: float, **options: int | bool) -> Budget:
    return Budget(minutes, lambda: pytest.fail("no trial is needed"), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("pace", [Pace(0.08, 0.5), Pace(0.9, 2.0), Pace(3.7, 11.0), Pace(0.2)])
def test_a_slow_model_gets_its_whole_time_as_a_quick_one_does(pace: Pace) -> None:
    plan = budget(4.0).first(pace)
    (length,) = plan.epoch_steps  # type: ignore[misc]
    spent = plan.epochs * (length * pace.step + pace.validation)
    assert spent == pytest.approx(240, abs=plan.epochs * pace.step)
    assert plan.epochs * pace.validation <= 24


def test_the_number_of_epochs_may_be_given() -> None:
    assert budget(1.0, epochs=10).first(Pace(0.5)) == Plan(10, [12])


@pytest.mark.parametrize("validations", [True, False])
@pytest.mark.parametrize("since", [0.0, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("off", [0.7, 1.0, 1.4])
def test_a_budget_holds_to_two_per_cent_although_the_trial_was_wrong(off, since, validations):
    """The trial misjudges all steps by `off` and the change of pace within the run by a tenth."""
    allowed = budget(4.0, validations=validations)
    true = Pace(0.1, 1.0 if validations else 0.0).then(Pace(0.16), since)
    pace = Pace(off * 0.1, off * true.validation).then(Pace(off * 0.176), since)
    plan, rows = allowed.first(pace), []
    lengths = list(plan.epoch_steps)
    trained = worked = 0.0
    for epoch in range(plan.epochs):
        if epoch:
            lengths.append(allowed.next(Plan(plan.epochs, lengths), pace, rows))
        trained += lengths[epoch] * true.between(epoch / plan.epochs, (epoch + 1) / plan.epochs)
        worked = trained + (epoch + 1) * 1.0
        rows.append({"train_seconds": trained, "work_seconds": worked})
    assert (worked if validations else trained) == pytest.approx(240, rel=0.02)


def test_a_run_that_has_spent_its_time_still_ends_with_a_step_per_epoch() -> None:
    rows = [{"train_seconds": 500.0, "work_seconds": 510.0}]
    assert budget(1.0).next(Plan(8, [50]), Pace(0.1), rows) == 1


def test_a_trial_leaves_the_experiment_as_it_was(workplace: Path) -> None:
    config = TrainConfig(size=16, batch_size=4, grad_clip=1.0)
    experiment, parts = Recovery(build("dense", 16), config), samples(config, seed=0)
    before = {name: value.clone() for name, value in experiment.state_dict().items()}
    pace = measure(experiment, parts.train, parts.validation)
    assert pace.step > 0
    assert pace.validation > 0
    assert all(torch.equal(before[name], value) for name, value in experiment.state_dict().items())
