"""Minutes of training: what is settled on the way, and that a resumed or repeated run takes the same steps."""

import csv

import pytest
import torch
from torch import Tensor

from lab.budget import Budget, Pace
from lab.files import read_json
from lab.run import Run
from pde.experiment import Markov

SMALL = ("--width", "4", "--modes", "3", "--batch-size", "6")


class Interruption(Exception):
    """As sudden as a signal that kills the process: nothing in the trainer knows it."""


@pytest.fixture
def timed(train_flow, workplace, monkeypatch):
    """Train with a budget of three epochs whose lengths are 4, 3 and 5 steps, whatever the clock says."""
    monkeypatch.setattr(Markov, "pace", lambda *_: Pace(0.02, 0.008))
    monkeypatch.setattr(Budget, "next", lambda self, plan, pace, rows: [3, 5][len(rows) - 1])

    def train(name: str, *words: str) -> int:
        return train_flow(
            *SMALL, "--minutes", "0.004", "--checkpoint-minutes", "1e-9", "--name", name, *words
        )

    return train


def ending(workplace, name: str) -> tuple[dict[str, Tensor], list[dict[str, str]]]:
    folder = workplace / "runs" / "pde" / name
    state: dict[str, Tensor] = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)[
        "state_dict"
    ]
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    return state, [{key: row[key] for key in row if not key.endswith("seconds")} for row in rows]


def assert_equal(workplace, *names: str) -> None:
    (first, rows), *others = (ending(workplace, name) for name in names)
    for state, others_rows in others:
        assert rows == others_rows
        assert first.keys() == state.keys()
        assert all(torch.equal(first[name], state[name]) for name in first)


PLAN = {"epochs": 3, "epoch_steps": [4, 3, 5]}


def test_what_was_settled_is_recorded_and_the_options_stay_those_that_were_given(timed, workplace):
    assert timed("a") == 0
    manifest = read_json(workplace / "runs/pde/a/manifest.json")
    assert manifest["plan"] == PLAN
    assert manifest["steps"]["total"] == 12
    assert [row["step"] for row in ending(workplace, "a")[1]] == ["4", "7", "12"]
    assert "epochs: 1\n" in (workplace / "runs/pde/a/config.yaml").read_text()


@pytest.mark.parametrize("stop", [2, 4, 6, 9], ids=["first", "settled", "second", "last"])
def test_a_killed_run_ends_as_the_whole_run_bit_for_bit(timed, workplace, monkeypatch, stop):
    """Killed before the first decision, right after it, and later: the same steps, which are not settled again."""
    words = ("--symmetries", "--transform-from", "0.5")
    assert timed("whole", *words) == 0
    with monkeypatch.context() as patch:
        loss = Markov.loss

        def interrupted(self: Markov, batch: list[Tensor]) -> Tensor:
            if self.global_step == stop:
                raise Interruption
            return loss(self, batch)

        patch.setattr(Markov, "loss", interrupted)
        with pytest.raises(Interruption):
            timed("stopped", *words)
    monkeypatch.setattr(Markov, "pace", lambda *_: pytest.fail("measured again"))
    assert timed("stopped", *words, "--resume") == 0
    assert_equal(workplace, "whole", "stopped")


def test_a_run_killed_between_the_decision_and_its_checkpoint_keeps_the_decision(
    timed, workplace, monkeypatch
):
    """The manifest knows more epochs than the checkpoint: what it knows counts."""
    with monkeypatch.context() as patch:
        update = Run.update

        def killed_after(self: Run, **entries: object) -> None:
            update(self, **entries)
            if entries.get("plan", {}).get("epoch_steps") == [4, 3]:  # type: ignore[attr-defined]
                raise Interruption

        patch.setattr(Run, "update", killed_after)
        with pytest.raises(Interruption):
            timed("stopped")
    monkeypatch.setattr(Budget, "next", lambda self, plan, pace, rows: {1: 50, 2: 5}[len(rows)])
    assert timed("stopped", "--resume") == 0
    assert read_json(workplace / "runs/pde/stopped/manifest.json")["plan"] == PLAN
    monkeypatch.setattr(Budget, "next", lambda self, plan, pace, rows: [3, 5][len(rows) - 1])
    assert timed("whole") == 0
    assert_equal(workplace, "whole", "stopped")


def test_a_run_repeated_with_the_steps_of_another_is_equal_to_it(
    timed, workplace, monkeypatch, train_flow, capsys
):
    assert timed("first") == 0
    monkeypatch.setattr(Markov, "pace", lambda *_: pytest.fail("measured again"))
    monkeypatch.setattr(Budget, "next", lambda *_: pytest.fail("settled again"))
    manifest = workplace / "runs/pde/first/manifest.json"
    assert timed("again", "--steps-of", str(manifest)) == 0
    assert train_flow(*SMALL, "--name", "without", "--steps-of", str(manifest)) == 0
    assert_equal(workplace, "first", "again", "without")
    capsys.readouterr()
    empty = workplace / "empty.json"
    empty.write_text("{}")
    assert train_flow(*SMALL, "--name", "wrong", "--steps-of", str(empty)) != 0
    assert "is not the manifest.json of a run that was trained" in " ".join(capsys.readouterr().err.split())


def test_the_time_asked_for_is_the_time_that_is_spent(train_flow, workplace):
    """With the clock as it is, on a machine that does other things: 3 s, within a tenth here."""
    assert train_flow(*SMALL, "--minutes", "0.05", "--name", "a") == 0
    with (workplace / "runs/pde/a/metrics.csv").open() as file:
        last = list(csv.DictReader(file))[-1]
    assert float(last["work_seconds"]) == pytest.approx(3.0, rel=0.1)
