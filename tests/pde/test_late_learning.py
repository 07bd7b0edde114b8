"""What begins late in a training, learned transforms or a finer grid: when, and what an interruption leaves of it."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pde.experiment import Markov
from pde.predictor import Forecaster

STEPS = 8  # four epochs of two batches
OPTIONS = ("--width", "4", "--modes", "3", "--batch-size", "6", "--epochs", "4", "--seed", "3")


class Interruption(Exception):
    """As sudden as a signal that kills the process: nothing in the trainer knows it."""


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[int, Tensor]:
    """The transforms' parameters after so many steps."""
    steps: dict[int, Tensor] = {}

    def look(self: Markov, *_: Any) -> None:
        parameters = self.model.net.transform_parameters()
        steps[self.global_step] = torch.cat([p.detach().flatten() for p in parameters])

    monkeypatch.setattr(Markov, "on_train_start", look)
    monkeypatch.setattr(Markov, "on_train_batch_end", look)
    return steps


@pytest.mark.parametrize(("share", "begin"), [("0", 0), ("0.5", 4), ("0.6", 5), ("1", 8)])
def test_transforms_begin_to_learn_after_their_share_of_the_steps(train_flow, seen, share, begin):
    assert train_flow(*OPTIONS, "--transform-from", share, "--name", "one") == 0
    assert sorted(seen) == list(range(STEPS + 1))
    changed = [not torch.equal(seen[step], seen[step + 1]) for step in range(STEPS)]
    assert changed == [step >= begin for step in range(STEPS)]


def test_training_begins_on_the_grid_of_the_data_and_goes_on_on_the_finer_one(train_flow, monkeypatch):
    sides, forward = [], Forecaster.forward

    def look(self: Forecaster, frames: Tensor) -> Tensor:
        if torch.is_grad_enabled():  # neither a validation nor the step before a forecast
            sides.append(frames.shape[1])
        return forward(self, frames)

    monkeypatch.setattr(Forecaster, "forward", look)
    assert train_flow(*OPTIONS, "--refine", "2", "--name", "one") == 0
    assert sides == [sides[0]] * (STEPS // 2) + [2 * sides[0]] * (STEPS // 2)


def last_state(folder: Path) -> dict[str, Tensor]:
    state: dict[str, Tensor] = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)[
        "state_dict"
    ]
    return state


def metrics(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [{key: value for key, value in row.items() if not key.endswith("seconds")} for row in rows]


@pytest.mark.parametrize("late", [("--transform-from", "0.5"), ("--refine", "2")], ids=["transforms", "grid"])
@pytest.mark.parametrize("stop", [2, 5], ids=["before it begins", "after it began"])
def test_an_interrupted_run_ends_as_the_whole_run_bit_for_bit(train_flow, workplace, monkeypatch, stop, late):
    words = [*OPTIONS, *late, "--checkpoint-minutes", "1e-9", "--symmetries"]
    assert train_flow(*words, "--name", "whole") == 0
    with monkeypatch.context() as patch:
        loss = Markov.loss

        def interrupted(self: Markov, batch: list[Tensor]) -> Tensor:
            if self.global_step == stop:
                raise Interruption
            return loss(self, batch)

        patch.setattr(Markov, "loss", interrupted)
        with pytest.raises(Interruption):
            train_flow(*words, "--name", "stopped")
    assert train_flow(*words, "--name", "stopped", "--resume") == 0
    whole, stopped = (workplace / "runs" / "pde" / name for name in ("whole", "stopped"))
    first, second = last_state(whole), last_state(stopped)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert metrics(whole) == metrics(stopped)
