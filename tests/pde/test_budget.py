"""So many minutes, in epochs and steps."""

from pathlib import Path
from typing import Any

import pytest

from lab.config import write_yaml
from pde import budget
from pde.config import TrainConfig


def settled(
    monkeypatch: pytest.MonkeyPatch, step: float, check: float, config: TrainConfig
) -> tuple[int, int]:
    """Epochs and their steps where a step and a validation take so many seconds."""
    monkeypatch.setattr(budget, "_seconds", lambda *_: (step, check))
    nothing: Any = None
    budget.choose_epochs(config, nothing, nothing, nothing)
    assert config.epoch_steps is not None
    return config.epochs, config.epoch_steps


@pytest.mark.parametrize(("step", "check"), [(0.08, 0.5), (0.9, 2.0), (3.7, 11.0)])
def test_a_slow_model_gets_its_whole_time_as_a_quick_one_does(
    step: float, check: float, monkeypatch: pytest.MonkeyPatch, workplace: Path
) -> None:
    epochs, steps = settled(monkeypatch, step, check, TrainConfig(minutes=4.0))
    spent = epochs * (steps * step + check)
    assert 240 - epochs * step <= spent <= 240
    assert epochs * check <= 24


def test_a_resumed_run_keeps_its_epochs(monkeypatch: pytest.MonkeyPatch, workplace: Path) -> None:
    begun = TrainConfig(minutes=4.0, name="begun", resume=True)
    before = settled(monkeypatch, 0.5, 1.0, begun)
    folder = workplace / "runs" / "pde" / "begun"
    folder.mkdir(parents=True)
    write_yaml(begun, folder / "config.yaml")
    assert settled(monkeypatch, 5.0, 1.0, TrainConfig(minutes=4.0, name="begun", resume=True)) == before
    assert settled(monkeypatch, 5.0, 1.0, TrainConfig(minutes=4.0, name="other", resume=True)) != before
