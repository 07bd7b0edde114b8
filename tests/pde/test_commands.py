"""The commands as people type them: train, eval, table, and what they answer to mistakes."""

from pathlib import Path

import pytest

from lab.cli import run
from lab.files import read_json
from pde.config import TableConfig
from pde.eval import evaluate
from pde.table import runs, table
from pde.train import train

SMALL = ["--preset", "smoke", "--nu", "1e-2", "--num-train", "4", "--num-val", "2", "--num-test", "2"]


def train_small(flow_file: Path, *words: str) -> int:
    return run("python -m pde.train", {"": train}, [*SMALL, "--data", str(flow_file), *words])


def test_train_then_eval_writes_tables_and_figures(flow_file: Path, workplace: Path) -> None:
    assert train_small(flow_file, "--model", "fno", "--width", "4", "--modes", "3", "--name", "a") == 0
    words = ["--recipe", "fno", "--width", "5", "--modes", "3", "--name", "b"]
    assert train_small(flow_file, "--model", "mno", *words) == 0
    assert run("python -m pde.eval", {"": evaluate}, ["--samples", "1"]) == 0
    results = workplace / "runs" / "pde" / "results"
    for name in ("table.md", "table.csv", "table.tex", "ratios.md", "errors.png", "spectra.png"):
        assert (results / name).stat().st_size > 0
    assert {path.suffix for path in results.glob("nu1e-2_sample1.*")} == {".png", ".gif"}
    lines = (results / "table.csv").read_text().splitlines()
    assert lines[0].startswith("model,parameters,nu 0.01,nu 0.01_se,nu 0.01_n")
    assert [line.split(",")[0] for line in lines[1:]] == ["mno", "fno"]
    data = read_json(workplace / "runs" / "pde" / "a" / "manifest.json")["data"]
    assert data["samples"] == {"train": [0, 4], "validation": [4, 6], "test": [8, 10]}


def test_eval_takes_any_weights_and_any_data(flow_file: Path, workplace: Path) -> None:
    assert train_small(flow_file, "--model", "ffno", "--width", "4", "--modes", "3", "--name", "a") == 0
    weights = str(workplace / "runs" / "pde" / "a" / "weights.safetensors")
    words = ["--weights", weights, "--data", str(flow_file), "--out", "here", "--figures", "false"]
    assert run("python -m pde.eval", {"": evaluate}, words) == 0
    written = [path.name for path in sorted(Path("here").iterdir())]
    assert written == ["per_sample.csv", "report.md", "table.csv", "table.md", "table.tex"]


def test_table_covers_models_viscosities_and_seeds_once() -> None:
    wanted = list(runs(TableConfig(models=["mno", "unet"], nus=[1e-3, 1e-5], seeds=3)))
    names = [options.name for options in wanted]
    assert len(set(names)) == len(names) == 2 * (3 + 1)
    assert "table-mno-nu1e-5-seed2" in names
    assert {options.minutes for options in wanted} == {10.0}
    assert {options.num_train for options in wanted} == {100}  # the laptop preset's


def test_table_skips_what_is_finished(
    flow_file: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def preset(app: str, name: str) -> dict[str, object]:
        small = {"num_train": 4, "num_val": 2, "num_test": 2, "batch_size": 8, "modes": 3, "width": 4}
        return {**small, "data": flow_file}

    monkeypatch.setattr("lab.presets.read_preset", preset)
    config = TableConfig(preset="smoke", models=["fno"], nus=[1e-2], minutes=0.01, threads=1)
    table(config)
    assert "finished already" not in capsys.readouterr().out
    table(config)
    assert "1/1 table-fno-nu1e-2-seed0 is finished already" in capsys.readouterr().out
    assert (workplace / "runs" / "pde" / "table-results" / "table.md").is_file()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "mon"], "--model takes one of mno, lfno, fno, ffno, sfno, unet, tfnet, resnet"),
        (["--data", "nowhere.h5"], "nowhere.h5"),
        (["--model", "unet", "--modes", "3"], "--modes does nothing with --model unet"),
        (["--form", "grid", "--twin", "ffno"], "leave --twin ffno out"),
        (["--latent", "32", "--twin", "fno"], "belongs to the twin latent"),
        (["--expansion", "4"], "add --twin ffno"),
        (["--minutes", "0"], "--minutes must be above 0"),
    ],
)
def test_mistakes_get_one_sentence_and_status_2(
    words: list[str], sentence: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("python -m pde.train", {"": train}, ["--preset", "smoke", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_foreign_data_file_is_refused(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("notes.h5").write_text("not HDF5")
    assert run("python -m pde.train", {"": train}, ["--preset", "smoke", "--data", "notes.h5"]) == 2
    assert "notes.h5" in capsys.readouterr().err


def test_too_few_samples_are_counted(
    flow_file: Path, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train_small(flow_file, "--num-train", "40") == 2
    assert "offers 10 samples" in capsys.readouterr().err


def test_eval_without_runs_says_how_to_get_one(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("python -m pde.eval", {"": evaluate}, []) == 2
    assert "python -m pde.train" in capsys.readouterr().err


def test_eval_refuses_weights_that_are_not(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("weights.safetensors").write_text("no")
    words = ["--weights", "weights.safetensors", "--data", "nowhere.h5"]
    assert run("python -m pde.eval", {"": evaluate}, words) == 2
    assert "weights.safetensors is not a whole safetensors file" in capsys.readouterr().err
