"""Scores of finished runs: what shares a row, and that nothing is computed twice."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from scipy.io import savemat

from data.fields.reader import open_fields
from lab.config import as_plain_dict
from lab.files import read_json, write_json
from lab.runs import FinishedRun, finished_runs, rows
from pde import report
from pde.config import EvalConfig, TrainConfig
from pde.scores import score_runs
from pde.sources import Split
from pde.tables import results_table

Again = Callable[..., Path]


@pytest.fixture
def again(train_flow, workplace) -> Again:
    """A finished run called "usual", and copies of it that claim to have been trained with other options."""
    assert train_flow("--model", "fno", "--width", "4", "--modes", "3", "--name", "usual") == 0
    runs = workplace / "runs" / "pde"

    def copy(name: str, data: Path | None = None, **changed: Any) -> Path:
        folder = Path(shutil.copytree(runs / "usual", runs / name))
        config = yaml.safe_load((folder / "config.yaml").read_text()) | changed
        manifest = read_json(folder / "manifest.json")
        if data is not None:
            few = {"num_train": 4, "num_val": 2, "num_test": 2}
            config["data"], manifest["data"] = (
                str(data),
                Split(TrainConfig(nu=1e-2, data=data, **few)).describe(),
            )
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        write_json(folder / "manifest.json", manifest)
        return folder

    return copy


def labels(results: Path) -> list[str]:
    return [line.split(" | ")[0].strip("| ") for line in (results / "table.md").read_text().splitlines()[4:]]


def test_runs_that_differ_are_rows_of_their_own(again, make_flow, evaluation, workplace, capsys):
    again("clipped", grad_clip=1.0)
    again("warm", warmup_steps=5)
    again("seed", seed=1)
    other = make_flow(1)
    again("data", data=other)
    assert evaluation("--figures", "false") == 0
    printed = capsys.readouterr().out
    found = labels(workplace / "runs" / "pde" / "results")
    assert found[0] == "fno"
    assert found[2:] == ["fno, grad clip 1", "fno, warmup steps 5"]
    assert found[1].startswith("fno, data ")
    for words in ("grad clip 1", "warmup steps 5"):
        assert words in printed
    seeds = [
        line.split(",")[-4] for line in (workplace / "runs/pde/results/table.csv").read_text().splitlines()
    ]
    assert seeds == ["seeds", "2", "1", "1", "1"]


def test_what_a_model_has_by_choice_is_said_where_others_have_their_own():
    def labelled(**models: dict[str, Any]) -> list[str]:
        runs = [
            FinishedRun(Path(name), as_plain_dict(TrainConfig(model=name, options=options)), {})
            for name, options in models.items()
        ]
        return [row.label for row in rows(runs, TrainConfig)]

    carried = {"transport": True}
    assert labelled(mno={}, fno=carried) == ["mno", "fno, transport"]
    assert labelled(mno=carried, ffno={}, fno=carried) == ["mno", "fno, transport", "ffno"]
    assert labelled(lfno={"width": 8}, fno={"width": 8}) == ["lfno", "fno"]


def test_viscosities_are_columns_although_their_data_differs(again, make_flow, workplace):
    """Runs of one row at several viscosities have other data each, and their row is one all the same."""
    folder = again("thick")
    config = yaml.safe_load((folder / "config.yaml").read_text()) | {"nu": 2e-2}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    manifest = read_json(folder / "manifest.json")
    manifest["data"]["fingerprint"] = "other"
    write_json(folder / "manifest.json", manifest)
    found = rows(finished_runs(TrainConfig), TrainConfig, apart=("nu",))
    assert [row.label for row in found] == ["fno", "fno"]
    # On one file they share its column.
    results = score_runs(finished_runs(TrainConfig), EvalConfig(data=make_flow()), workplace / "scores")
    assert [result.label for result in results] == ["fno, nu 0.02", "fno, nu 0.01"]
    assert len(results_table(results).rows) == 2


def test_a_file_that_tells_no_viscosity_has_that_of_its_run(again, make_flow, workplace):
    """As the public files whose names do not: two of them are two columns."""
    fields, files = open_fields(make_flow()), {}
    for name, nu in (("V1", 1e-2), ("V2", 2e-2)):
        files[name] = workplace / f"ns_data_{name}_N10_T13.mat"
        savemat(files[name], {"u": nu * fields.load()[..., 0].numpy(), "t": fields.times.numpy()})
        again(name, data=files[name], nu=nu)
    runs = [run for run in finished_runs(TrainConfig) if run.name in files]
    results = score_runs(runs, EvalConfig(), workplace / "scores")
    assert {(result.label, result.case) for result in results} == {("fno", "nu1e-2"), ("fno", "nu2e-2")}
    page = report.write(results, [], [], workplace / "report.html").read_text()
    assert all(f"<b>FNO, nu = {nu}</b>: {name}" in page for name, nu in (("V1", 0.01), ("V2", 0.02)))


def test_weights_of_one_folder_are_rows_of_their_own(again, flow_file, evaluation, workplace):
    weights = workplace / "runs" / "pde" / "usual" / "weights.safetensors"
    names = [str(shutil.copy(weights, workplace / f"{name}.safetensors")) for name in ("one", "two")]
    words = ["--data", str(flow_file), "--out", "here", "--figures", "false"]
    assert evaluation("--weights", *names, *words) == 0
    assert labels(Path("here")) == [name.removesuffix(".safetensors") for name in names]


def test_scores_are_kept(again, evaluation, workplace, capsys):
    assert evaluation("--figures", "false") == 0
    assert "usual: 2 forecasts" in capsys.readouterr().out
    table = (workplace / "runs" / "pde" / "results" / "table.csv").read_text()
    assert evaluation("--figures", "false") == 0
    assert "forecasts" not in capsys.readouterr().out
    assert (workplace / "runs" / "pde" / "results" / "table.csv").read_text() == table


def test_scores_of_other_samples_are_computed_anew(again, evaluation, capsys):
    assert evaluation("--figures", "false") == 0
    assert evaluation("--figures", "false", "--num-test", "1") == 0
    assert "usual: 1 forecasts" in capsys.readouterr().out
