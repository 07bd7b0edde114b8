"""Which runs share a row of a table, and what the rows are called."""

import weakref
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.config import defaults, write_yaml
from lab.demo.config import TrainConfig
from lab.errors import UserError
from lab.files import write_json, write_text
from lab.runs import FinishedRun, Row, finished_runs, rows, train_missing


def made(folder: str = "run", fingerprint: str = "f", **changed: Any) -> FinishedRun:
    options = defaults(TrainConfig, changed.get("model", "monarch")) | changed
    return FinishedRun(Path(folder), options, {"data": {"fingerprint": fingerprint}})


def labels(*runs: FinishedRun) -> list[str]:
    return [row.label for row in rows(runs, TrainConfig)]


def test_seeds_share_a_row_whatever_machine_they_ran_on():
    (row,) = rows([made("b", seed=1, threads=1), made("a", seed=0, threads=2, name="x")], TrainConfig)
    assert [run.seed for run in row.runs] == [0, 1]
    assert row.label == row.model == "monarch"


def test_the_default_goes_without_saying_where_no_value_is_the_commonest():
    assert labels(made(lr=1e-3), made(lr=2e-3)) == ["monarch", "monarch, lr 0.002"]


def test_the_commonest_value_goes_without_saying():
    runs = [made(lr=0.5, blocks=blocks) for blocks in (2, 4)] + [made(lr=1e-3, blocks=2)]
    assert labels(*runs) == ["monarch", "monarch, blocks 4", "monarch, lr 0.001"]


def test_a_row_counts_once_in_however_many_columns_it_stands():
    runs = [made(lr=0.5, num_train=count) for count in (3, 4, 5)] + [made(lr=1e-3), made(lr=1e-3, blocks=2)]
    found = {row.label for row in rows(runs, TrainConfig, apart=("num_train",))}
    assert found == {"monarch, lr 0.5", "monarch", "monarch, blocks 2"}


def test_labels_tell_all_rows_apart():
    runs = [
        made(lr=lr, flip=flip, blocks=b) for lr in (0.1, 0.2) for flip in (True, False) for b in (None, 2)
    ]
    assert len(set(labels(*runs))) == len(runs)


def test_rows_that_words_do_not_tell_apart_have_the_names_of_their_runs():
    """One would be lost from the table."""
    runs = [made("a", lr=0.1), made("b", lr=0.1 + 1e-9), made("c", lr=0.2)]
    assert labels(*runs) == ["monarch, lr 0.1 (a)", "monarch, lr 0.1 (b)", "monarch, lr 0.2"]
    runs = [
        made("a", flip=False),
        made("b", flip=None),
        *(made("c", flip=True, lr=lr) for lr in (0.1, 0.2, 1e-3)),
    ]
    assert {"monarch, no flip (a)", "monarch, no flip (b)"} <= set(labels(*runs))


def test_options_that_have_a_column_of_their_own_are_no_part_of_the_label_and_still_separate():
    found = rows([made(num_train=8), made(num_train=9)], TrainConfig, apart=("num_train",))
    assert [row.label for row in found] == ["monarch", "monarch"]


def test_data_is_compared_within_a_column():
    runs = [made(size=4, fingerprint="f"), made(size=8, fingerprint="g"), made(size=8, fingerprint="h")]
    found = [row.label for row in rows(runs, TrainConfig, apart=("size",))]
    assert found == ["monarch", "monarch, data g", "monarch, data h"]


def test_other_data_is_another_row_and_a_moved_folder_is_not():
    assert len(labels(made(fingerprint="f"), made(fingerprint="g"))) == 2
    assert labels(made(data="here", seed=0), made(data="there", seed=1)) == ["monarch"]


def test_of_equal_runs_the_last_counts_and_that_is_said(capsys):
    (row,) = rows([made("first"), made("second")], TrainConfig)
    assert [run.name for run in row.runs] == ["second"]
    assert "first and second are equal in every option" in capsys.readouterr().out


def test_rows_follow_the_order_of_the_registry():
    assert labels(made(model="dense"), made(model="monarch")) == ["monarch", "dense"]


def test_what_a_training_held_is_gone_before_the_next_one_begins(tmp_path, monkeypatch):
    monkeypatch.setenv("MONARCH_RUNS", str(tmp_path))
    held: list[weakref.ref[Any]] = []

    class Data:
        """What a trainer and its callbacks hold, and each other."""

    def train(config: TrainConfig) -> None:
        assert [each() for each in held] == [None] * len(held)
        data = Data()
        data.itself = data
        held.append(weakref.ref(data))
        folder = tmp_path / config.app / str(config.name)
        write_json(folder / "manifest.json", {"status": "finished"})
        write_text(folder / "config.yaml", yaml.safe_dump({"model": config.model, "seed": config.seed}))

    assert len(train_missing([TrainConfig(name="a"), TrainConfig(name="b", seed=1)], train)) == 2
    assert len(held) == 2


def test_a_finished_run_with_other_options_than_those_asked_for_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MONARCH_RUNS", str(tmp_path))
    folder = tmp_path / TrainConfig.app
    for name in ("a", "b"):
        write_json(folder / name / "manifest.json", {"status": "finished"})
        write_yaml(TrainConfig(name=name), folder / name / "config.yaml")
    train_missing([TrainConfig(name="a"), TrainConfig(name="b", lr=0.25)], pytest.fail)
    first, second = capsys.readouterr().out.splitlines()
    assert first == "run 1/2, a: finished before"
    assert second.startswith("run 2/2, b: finished before with other options (--lr was ")
    assert second.endswith("now 0.25); a run of another name would have those of now")


@pytest.mark.parametrize("value", [None, 0])
def test_an_option_unknown_to_an_older_run_had_its_default(value):
    older = made(seed=1)
    options = {key: each for key, each in older.config.items() if key != "warmup_steps"}
    runs = [FinishedRun(Path("older"), options, older.manifest), made(warmup_steps=0)]
    assert len(rows(runs, TrainConfig)) == 1


def test_a_row_knows_its_options():
    row = Row("monarch", (made(lr=0.3),))
    assert row.config["lr"] == 0.3


@pytest.mark.parametrize(
    "content", ["", "epoch,loss\n", "epoch,loss\n1,2\n", "epoch,error\n1,2\n2,\n", "x,error\n1,2\n"]
)
def test_curves_that_lack_something_are_refused(tmp_path, content):
    (tmp_path / "metrics.csv").write_text(content)
    with pytest.raises(UserError, match=r"metrics\.csv"):
        FinishedRun(tmp_path, {}, {}).metrics("error")
    (tmp_path / "metrics.csv").write_text("epoch,error,lr\n1,2,\n2,1,3\n")
    assert FinishedRun(tmp_path, {}, {}).metrics("error")[1] == {"epoch": 2, "error": 1, "lr": 3}


def stored(folder: Path, **changed: Any) -> Path:
    write_json(folder / "one" / "manifest.json", {"status": "finished", "data": None, "hardware": {}})
    options = defaults(TrainConfig, "monarch") | changed
    write_text(folder / "one" / "config.yaml", yaml.safe_dump(options))
    return folder


def test_a_finished_run_is_found_as_it_was_stored(tmp_path):
    (run,) = finished_runs(TrainConfig, stored(tmp_path, lr=1, epoch_steps=None))
    assert (run.name, run.model, run.seed) == ("one", "monarch", 0)


def test_an_option_that_an_older_run_did_not_have_has_its_default(tmp_path):
    folder = stored(tmp_path)
    path = folder / "one" / "config.yaml"
    path.write_text(path.read_text().replace("num_train: 48\n", ""))
    (run,) = finished_runs(TrainConfig, folder)
    assert run.config["num_train"] == 48


@pytest.mark.parametrize(
    "wrong",
    [{"wall_seconds": []}, {"wall_seconds": 10**400}, {"hardware": {"accelerators": 7}}, {"resumed": 1}],
)
def test_a_manifest_with_an_impossible_entry_is_named(tmp_path, wrong):
    folder = stored(tmp_path)
    write_json(folder / "one" / "manifest.json", {"status": "finished"} | wrong)
    with pytest.raises(UserError, match=r"manifest\.json: \w+ is .*, which cannot be"):
        finished_runs(TrainConfig, folder)


@pytest.mark.parametrize(
    "wrong",
    [{"seed": 10**400}, {"seed": None}, {"size": []}, {"noise": None}, {"model": 3}, {"epochs": True}],
)
def test_a_finished_run_with_an_impossible_option_is_named(tmp_path, wrong):
    with pytest.raises(UserError, match=rf"config\.yaml: {next(iter(wrong))} is "):
        finished_runs(TrainConfig, stored(tmp_path, **wrong))
