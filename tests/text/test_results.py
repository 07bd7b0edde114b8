"""From runs to tables: what is compared with what, and the commands from end to end."""

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest

from lab import cli
from lab.cli import run
from lab.config import as_plain_dict
from lab.errors import UserError
from lab.runs import FinishedRun, Row
from text.config import TableConfig, TrainConfig
from text.eval import evaluate
from text.models.__main__ import show
from text.models.parts.cost import Cost
from text.predictor import load
from text.scores import Result, baseline, time_to_reach
from text.table import planned, table, timed
from text.train import train


class Told(FinishedRun):
    """A finished run whose metrics are told."""

    rows: list[dict[str, float]]

    def metrics(self, *needed: str) -> list[dict[str, float]]:
        return self.rows


def result(setting: str, curve: list[tuple[float, float]], seed: int = 0, **changed) -> Result:
    config = as_plain_dict(TrainConfig(setting=setting, seed=seed)) | changed
    told = Told(Path(f"{setting}{seed}"), config, {"steps": {"total": 100}})
    object.__setattr__(told, "rows", [{"train_seconds": t, "bits_per_byte": b} for t, b in curve])
    return Result(Row(setting, (told,)), Cost(1, 1, 1), ([1.0],), 1.0)


def test_the_time_to_the_dense_loss_lies_between_two_validations():
    dense = result("dense", [(10, 4.0), (20, 3.0)])
    assert time_to_reach(result("reverse", [(5, 4.0), (9, 3.2), (13, 2.8)]), dense) == pytest.approx(11 / 20)
    assert time_to_reach(result("reverse", [(5, 2.0)]), dense) == pytest.approx(5 / 20)
    assert time_to_reach(result("reverse", [(5, 4.0), (9, 3.2)]), dense) is None
    assert time_to_reach(result("reverse", [(5, 2.0)], seed=1), dense) is None


def test_a_setting_is_compared_with_the_run_that_is_equal_in_all_else():
    dense, other = result("dense", []), result("dense", [], lr=0.5)
    tuned, timed = result("finetune", []), result("dense", [], minutes=3.0)
    everything = [other, timed, tuned, dense]
    assert baseline(result("reverse", [], switch_at=0.7), everything) is dense
    assert baseline(result("monarch", [], minutes=3.0), everything) is dense
    assert baseline(result("project", []), everything) is tuned
    assert baseline(result("monarch", [], lr=0.25), everything) is None
    assert baseline(dense, everything) is None
    assert baseline(result("monarch", [], blocks=8), everything) is dense


def test_budgets_are_shares_of_the_time_of_the_dense_run_of_the_first_seed():
    config = TableConfig(settings=["dense", "monarch", "finetune", "project"], seeds=2, times=[0.5, 1.0])
    wanted = list(planned(config))
    runs = [
        result(name, [(90.0, 3.0)], seed=seed).row.runs[0]
        for name in ("dense", "finetune")
        for seed in (0, 1)
    ]
    runs[1].rows[-1]["train_seconds"] = 120.0
    again = list(timed(config, wanted, runs))
    expected = [("monarch", seed, minutes) for seed in (0, 1) for minutes in (0.75, 1.5)]
    assert [(each.setting, each.seed, each.minutes) for each in again] == expected
    assert len({each.name for each in [*wanted, *again]}) == 8 + 4


def test_table_trains_all_settings_and_skips_what_is_finished(texts, workplace, capsys):
    words = ["--preset", "smoke", "--data", str(texts), "--seeds", "1", "--times", "1.0"]
    assert run("python -m text.table", {"": table}, words) == 0
    results = workplace / "runs/text/table-gpt-results"
    assert {path.suffix for path in results.glob("table.*")} == {".md", ".csv", ".tex"}
    assert (results / "learning.png").stat().st_size > 10_000
    with (results / "per_sequence.csv").open() as file:
        sequences = list(csv.DictReader(file))
    assert {row["sequence"] for row in sequences} == {"0", "1"}  # as many as --num-test, for every run
    assert all(float(row["bits per byte"]) > 0 for row in sequences)
    with (results / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    counts = Counter(row["setting"] for row in rows)
    assert counts == {"dense": 1, "finetune": 1, "project": 1, "adapter": 1, "monarch": 2, "reverse": 2}
    compared = ("monarch", "reverse", "project", "adapter")
    assert all(float(row["speedup"]) > 0 for row in rows if row["setting"] in compared)
    assert not any(row["change"] for row in rows if row["setting"] not in compared)
    capsys.readouterr()
    assert run("python -m text.table", {"": table}, words) == 0
    assert capsys.readouterr().out.count("finished before") == len(rows)


def test_train_eval_and_continue_a_text_with_byte_pairs(texts, workplace, capsys):
    pytest.importorskip("tokenizers")
    words = ["--preset", "smoke", "--data", str(texts), "--vocabulary", "bpe", "--vocabulary-size", "300"]
    assert run("python -m text.train", {"": train}, [*words, "--name", "one"]) == 0
    assert run("python -m text.eval", {"": evaluate}, []) == 0
    with (workplace / "runs/text/results/table.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert 1 < float(row["perplexity"]) <= 320
    predictor = load("runs/text/one/weights.safetensors")
    text = predictor.continued("line 1: ", tokens=5)
    assert text.startswith("line 1: ")
    assert predictor.continued("line 1: ", tokens=5) == text
    likeliest = [predictor.continued("line 1: ", tokens=5, temperature=0, seed=seed) for seed in (0, 1)]
    assert likeliest[0] == likeliest[1]


def test_runs_are_not_scored_on_other_text_than_theirs(texts, workplace, capsys):
    own = workplace / "own"
    shutil.copytree(texts, own)
    words = ["--preset", "smoke", "--data", "own", "--name", "one"]
    assert run("python -m text.train", {"": train}, words) == 0
    (own / "table0.txt").write_text("changed")
    assert run("python -m text.eval", {"": evaluate}, []) == 2
    assert "one was trained on other text" in capsys.readouterr().err


def test_bert_does_not_continue_texts(texts, workplace):
    words = ["--preset", "smoke", "--data", str(texts), "--arch", "bert", "--name", "one"]
    assert run("python -m text.train", {"": train}, words) == 0
    with pytest.raises(UserError, match="only one that predicts the next token"):
        load("runs/text/one/weights.safetensors").continued("a")


def test_the_list_of_models_has_sizes_and_speeds(capsys):
    words = ["--sizes", "tiny", "--vocabulary", "100", "--context", "16", "--time"]
    assert run("python -m text.models", {"": show}, words) == 0
    out = capsys.readouterr().out
    assert "Monarch" in out
    assert "speed-up" in out


@pytest.mark.parametrize("option", ["--vocabulary", "--context", "--batch-size", "--threads"])
def test_models_of_nothing_are_answered_with_a_sentence(capsys, option):
    assert run("python -m text.models", {"": show}, ["--sizes", "tiny", "--time", option, "0"]) == 2
    assert f"{option} must be at least 1, not 0" in capsys.readouterr().err


def test_an_unknown_setting_is_answered_with_a_sentence(capsys):
    assert run("python -m text.table", {"": table}, ["--preset", "smoke", "--settings", "dens"]) == 2
    assert "did you mean dense?" in capsys.readouterr().err


@pytest.mark.parametrize("preset", ["paper", "laptop", "smoke"])
def test_bert_has_presets_of_its_own_and_switches_at_70_per_cent(preset):
    config = cli.parse(TrainConfig, ["--preset", preset, "--arch", "bert"], prog="x")
    assert (config.model, config.switch_at) == ("bert", 0.7)
    assert cli.parse(TrainConfig, ["--preset", preset], prog="x").switch_at == 0.9
