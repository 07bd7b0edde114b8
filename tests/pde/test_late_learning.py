"""Transforms that begin to learn late: when they change, and what an interruption leaves of that."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pde.experiment import Markov

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


def last_state(folder: Path) -> dict[str, Tensor]:
    state: dict[str, Tensor] = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)[
        "state_dict"
    ]
    return state


def metrics(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [{key: value for key, value in row.items() if not key.endswith("seconds")} for row in rows]


@pytest.mark.parametrize("stop", [2, 5], ids=["before they learn", "after they began"])
def test_an_interrupted_run_ends_as_the_whole_run_bit_for_bit(train_flow, workplace, monkeypatch, stop):
    words = [*OPTIONS, "--transform-from", "0.5", "--checkpoint-minutes", "1e-9", "--symmetries"]
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
