"""Learning-rate schedules and the run folder's guards."""

import importlib
import math
import os
from itertools import pairwise

import pytest
import torch

from lab.console import is_first_process
from lab.demo.config import TableConfig, TrainConfig
from lab.errors import UserError
from lab.experiment import learning_rate_schedule
from lab.paths import plain_name
from lab.plan import Steps
from lab.run import Run
from lab.runs import finished_runs


def rates(config: TrainConfig, steps: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=config.lr)
    schedule = learning_rate_schedule(optimizer, config, Steps(config.epochs, [steps // config.epochs]))
    values = []
    for _ in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return values


def test_cosine_falls_from_the_peak_to_zero():
    values = rates(TrainConfig(lr=2.0, schedule="cosine"), 100)
    expected = [1 + math.cos(math.pi * step / 100) for step in range(100)]
    assert values == pytest.approx(expected)


def test_warm_up_rises_linearly_to_the_peak():
    values = rates(TrainConfig(lr=1.0, schedule="constant", warmup_steps=4, epochs=2), 8)
    assert values == pytest.approx([0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1])


def test_step_halves_every_so_many_epochs():
    values = rates(TrainConfig(lr=1.0, schedule="step", epochs=4, step_size=2), 20)
    assert values == pytest.approx([1.0] * 10 + [0.5] * 10)


def test_one_cycle_peaks_once_and_ends_low():
    values = rates(TrainConfig(lr=1.0, schedule="one-cycle"), 50)
    peak = values.index(max(values))
    assert max(values) == pytest.approx(1.0, abs=1e-2)
    assert values[: peak + 1] == sorted(values[: peak + 1])
    assert values[peak:] == sorted(values[peak:], reverse=True)
    assert values[-1] < 3e-3


@pytest.mark.parametrize("schedule", ["cosine", "one-cycle"])
def test_a_schedule_is_continuous_where_the_length_of_the_run_is_settled_on_the_way(schedule):
    """Epochs of 40, 50 and 30 steps: no jump larger than the steepest slope of the shortest epoch."""
    config, steps = TrainConfig(lr=1.0, schedule=schedule), Steps(3, [40])
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=config.lr)
    scheduler = learning_rate_schedule(optimizer, config, steps)
    values = []
    for step in range(120):
        if step in (40, 90):
            steps.lengths.append(50 if step == 40 else 30)
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert steps.total == 120
    assert (
        max(abs(a - b) for a, b in pairwise(values))
        < (math.pi / 2 / 0.3 if schedule == "one-cycle" else 1.6) / 90
    )
    assert optimizer.param_groups[0]["lr"] < 1e-5


def test_one_cycle_is_that_of_torch_but_for_a_step():
    steps, parameter = 200, torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=steps, cycle_momentum=False)
    expected = []
    for _ in range(steps):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step() if len(expected) < steps else None
    values = rates(TrainConfig(lr=1.0, schedule="one-cycle"), steps)
    assert values == pytest.approx(expected, abs=0.03)


def test_a_folder_in_use_cannot_be_resumed_by_another_process(workplace):
    config = TrainConfig(name="busy", resume=True)
    with Run.open(config), pytest.raises(UserError, match="another process is working in"):
        Run.open(TrainConfig(name="busy", resume=True))
    with Run.open(config) as run:
        assert run.folder.is_dir()


def test_resuming_on_other_data_is_refused(workplace):
    with Run.open(TrainConfig(name="one"), {"fingerprint": "a"}):
        pass
    with pytest.raises(UserError, match="trained on other data"):
        Run.open(TrainConfig(name="one", resume=True), {"fingerprint": "b"})


@pytest.mark.parametrize(
    "name",
    [
        "../elsewhere",
        "..",
        ".",
        "",
        "/tmp/x",
        "a/b",
        "a\\b",
        ".hidden",
        "C:x",
        "a\0b",
        "a\nb",
        "x" * 200,
        "\ud800",
    ],
)
@pytest.mark.parametrize("resume", [False, True])
def test_a_name_cannot_escape_the_runs_folder(workplace, name, resume):
    with pytest.raises(UserError, match="plain folder name"):
        Run.open(TrainConfig(name=name, resume=resume))
    assert not (workplace / "runs").exists()


@pytest.mark.parametrize("name", ["mno", "überlauf 2", "a.b-c_d", "20260101-120000-mno-seed0", "echo:2"])
def test_ordinary_names_are_names(name):
    assert plain_name(name, "--name") == name


@pytest.mark.parametrize("prefix", ["../x", "/tmp/x", "..", ""])
@pytest.mark.parametrize("package", ["lab.demo", "pde", "mri", "text"])
def test_a_prefix_cannot_escape_the_runs_folder(package, prefix):
    table = importlib.import_module(f"{package}.config").TableConfig
    with pytest.raises(UserError, match="--prefix must be a plain folder name"):
        table(prefix=prefix)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"size": 97}, "--size must be no prime number, not 97.*98 will do"),
        ({"size": 16, "options": {"blocks": 17}}, "--blocks must be at most --size, 16, not 17"),
    ],
)
def test_a_matrix_that_cannot_be_is_refused(options, answer):
    with pytest.raises(UserError, match=answer):
        TrainConfig(**options)


def test_a_table_needs_a_model():
    with pytest.raises(UserError, match="--models needs at least one entry"):
        TableConfig(models=[])


@pytest.mark.parametrize("package", ["lab.demo", "pde", "mri", "text"])
def test_a_table_needs_a_seed(package):
    table = importlib.import_module(f"{package}.config").TableConfig
    with pytest.raises(UserError, match="--seeds"):
        table(seeds=0)


def test_processes_of_one_launcher_agree_on_the_folder(workplace, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "abc")
    with Run.open(TrainConfig()) as first:
        os.environ.pop("MONARCH_RUN_NAME")
        monkeypatch.setenv("RANK", "1")
        assert not is_first_process()
        with Run.open(TrainConfig()) as second:
            assert second.folder == first.folder


def test_no_finished_run_is_a_sentence_with_the_command(workplace):
    with pytest.raises(UserError, match=r"python -m lab\.demo\.train"):
        finished_runs(TrainConfig)
