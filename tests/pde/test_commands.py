"""The commands as people type them: train, eval, table, and what they answer to mistakes."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from data.fields.generator import generate
from data.fields.geometry import Sphere
from data.fields.reader import open_fields
from data.navier_stokes.config import GenerateConfig
from lab import cli
from lab.cli import run
from lab.config import as_plain_dict
from lab.files import read_json
from pde.config import TableConfig
from pde.models import comparison
from pde.problems import PROBLEMS
from pde.table import planned, table
from pde.train import train

NEW = ["darcy", "burgers-walls", "shallow-water"]


def test_train_then_eval_writes_tables_and_figures(train_flow, evaluation, workplace):
    assert train_flow("--model", "fno", "--width", "4", "--modes", "3", "--name", "a") == 0
    words = ["--recipe", "fno", "--width", "5", "--modes", "3", "--name", "b"]
    assert train_flow("--model", "mno", *words) == 0
    assert evaluation("--samples", "1") == 0
    results = workplace / "runs" / "pde" / "results"
    made = ("table.md", "table.csv", "table.tex", "ratios.md", "horizons.md")
    for name in (*made, "errors.png", "correlations.png", "spectra.png", "energy.png"):
        assert (results / name).stat().st_size > 0
    assert {path.suffix for path in results.glob("nu1e-2_sample1.*")} == {".png", ".gif"}
    lines = (results / "table.csv").read_text().splitlines()
    assert lines[0].startswith("model,parameters,nu1e-2,nu1e-2_se,nu1e-2_n")
    assert [line.split(",")[0] for line in lines[1:]] == ["mno", "fno"]
    data = read_json(workplace / "runs" / "pde" / "a" / "manifest.json")["data"]
    assert data["samples"] == {"train": [0, 4], "validation": [4, 6], "test": [8, 10]}


@pytest.mark.parametrize("problem", NEW)
def test_every_problem_goes_from_data_to_table(problem, train_fields, evaluation, workplace):
    right = PROBLEMS[problem].geometry.transforms[0]
    assert train_fields(problem, "--model", "fno", "--padding", "0.125", "--name", "padded") == 0
    assert train_fields(problem, "--model", "lfno", "--start", right, "--name", "fixed") == 0
    assert train_fields(problem, "--form", "grid", "--start", right, "--name", "mno") == 0
    assert evaluation() == 0
    results = workplace / "runs" / "pde" / "results"
    steps = {"errors.png", "correlations.png", f"{problem}_sample0.gif"} if problem != "darcy" else set()
    pictures = {"places.png", f"{problem}_sample0.png"} | steps
    assert {path.name for path in results.iterdir() if path.suffix in (".png", ".gif")} == pictures
    assert (results / "ratios.md").is_file()
    assert 'id="picture-0-0"' in (results / "report.html").read_text()
    lines = (results / "table.csv").read_text().splitlines()
    assert lines[0].startswith(f"model,parameters,{problem},{problem}_se,{problem}_n")
    names = [row[0] for row in csv.reader(lines[1:])]
    assert names == [f"mno, start {right}", f"lfno, start {right}", "fno"]
    data = read_json(workplace / "runs" / "pde" / "mno" / "manifest.json")["data"]
    assert data["problem"] == problem
    assert data["samples"] == {"train": [0, 4], "validation": [4, 6], "test": [6, 8]}


def test_problems_do_not_share_a_table(train_fields, evaluation, workplace):
    for problem in ("darcy", "burgers-walls"):
        assert train_fields(problem, "--model", "fno", "--name", problem) == 0
    assert evaluation("--figures", "false") == 0
    for problem in ("darcy", "burgers-walls"):
        text = (workplace / "runs" / "pde" / "results" / problem / "table.csv").read_text()
        assert text.splitlines()[0].split(",")[2] == problem
        assert len(text.splitlines()) == 2
    assert evaluation("--problem", "darcy", "--out", "here", "--figures", "false") == 0
    written = {path.name for path in Path("here").iterdir()}
    tables = {
        f"{name}.{suffix}" for name in ("table", "places", "metrics") for suffix in ("csv", "md", "tex")
    }
    assert written == {"per_sample.csv", "report.html", "scores"} | tables


def test_eval_takes_any_weights_and_any_data(train_flow, evaluation, make_flow, workplace):
    assert train_flow("--model", "ffno", "--width", "4", "--modes", "3", "--name", "a") == 0
    weights = str(workplace / "runs" / "pde" / "a" / "weights.safetensors")
    words = ["--weights", weights, "--data", str(make_flow(1)), "--out", "here", "--figures", "false"]
    assert evaluation(*words) == 0
    written = [path.name for path in sorted(Path("here").iterdir())]
    tables = [
        f"{name}.{suffix}" for name in ("horizons", "table", "metrics") for suffix in ("csv", "md", "tex")
    ]
    assert written == sorted([*tables, "per_sample.csv", "report.html", "scores"])
    assert len(Path("here/per_sample.csv").read_text().splitlines()) == 11  # all samples of the file
    # Averages over symmetries are other forecasts, kept apart from those without.
    for images in ("4", "1"):
        assert evaluation(*words, "--average-symmetries", images) == 0
        written = Path("here/per_sample.csv").read_text()
        Path(f"{images}.csv").write_text(written)
    assert Path("1.csv").read_text() != Path("4.csv").read_text()


def test_of_the_file_it_was_trained_on_a_run_meets_the_test_samples_alone(
    train_flow, evaluation, flow_file, workplace
):
    assert train_flow("--model", "ffno", "--width", "4", "--modes", "3", "--name", "a") == 0
    weights = str(workplace / "runs" / "pde" / "a" / "weights.safetensors")
    words = ["--data", str(flow_file), "--out", "here", "--figures", "false"]
    for which in ([], ["--weights", weights]):
        assert evaluation(*words, *which) == 0
        assert len(Path("here/per_sample.csv").read_text().splitlines()) == 1 + 2
        assert (
            "2 test samples (simulated) on 16 x 16 points, which no training has seen."
            in Path("here/report.html").read_text()
        )
    assert evaluation(*words, "--num-test", "10") == 0
    assert (
        "10 test samples (simulated) on 16 x 16 points, some of which a training has seen."
        in Path("here/report.html").read_text()
    )


def test_a_rollout_is_as_long_as_the_trajectories_it_is_shown(train_flow, evaluation, workplace, tmp_path):
    assert train_flow("--model", "fno", "--width", "4", "--modes", "3", "--name", "a") == 0
    long, size = tmp_path / "long.h5", {"num_samples": 2, "final_time": 50, "grid": 16, "resolution": 16}
    generate(GenerateConfig(nu=1e-2, seed=1, precision="float32", out=long, workers=1, **size))
    weights = str(workplace / "runs" / "pde" / "a" / "weights.safetensors")
    assert evaluation("--weights", weights, "--data", str(long), "--out", "long") == 0
    (row,) = csv.DictReader(Path("long/horizons.csv").read_text().splitlines())
    assert int(row["steps"]) == 40
    assert 0 <= float(row["correlation 0.95"]) <= float(row["correlation 0.8"]) <= 40
    assert float(row["energy"]) > 0
    for name in ("correlations.png", "energy.png", "spectra.png"):
        assert Path("long", name).stat().st_size > 5000


def test_weights_meet_their_own_problem_only(train_fields, evaluation, field_file, workplace, capsys):
    assert train_fields("darcy", "--model", "fno", "--name", "a") == 0
    trained = str(workplace / "runs" / "pde" / "a" / "weights.safetensors")
    words = ["--weights", trained, "--figures", "false", "--out", "here", "--data"]
    assert evaluation(*words, str(field_file("darcy"))) == 0
    assert evaluation(*words, str(field_file("burgers-walls"))) == 2
    assert "holds samples of burgers-walls, not of darcy" in capsys.readouterr().err


def table_options(*words: str) -> TableConfig:
    config: TableConfig = cli.parse(TableConfig, ["--preset", "laptop", *words], prog="x")
    return config


def test_table_covers_models_viscosities_and_seeds_once():
    words = ["--models", "mno,unet", "--nus", "1e-3,1e-5", "--seeds", "3", "--seeded-models", "mno"]
    wanted = list(planned(table_options(*words)))
    names = [options.name for options in wanted]
    assert len(set(names)) == len(names) == 2 * (3 + 1)
    assert "table-nu1e-5-mno-seed2" in names
    assert {options.minutes for options in wanted} == {10.0}
    assert {options.num_train for options in wanted} == {100}  # the laptop preset's


def test_an_ablation_leaves_out_one_part_at_a_time():
    wanted = list(planned(table_options("--ablation", "true", "--nus", "1e-5", "--seeds", "2")))
    names = [options.name for options in wanted if options.seed == 1]
    parts = ["symmetries", "coordinates", "transport", "filter", "shear", "cells", "learning"]
    whole = "table-nu1e-5-mno"
    assert names == [f"{whole}-seed1", *(f"{whole}-without-{part}-seed1" for part in parts)]
    first, *others = (as_plain_dict(options) for options in wanted if options.seed == 0)
    for part, options in zip(parts, others, strict=True):
        changed = {key for key in first if key != "name" and first[key] != options[key]}
        assert changed == ({"learn_x", "learn_y"} if part == "learning" else {part})


def test_an_ablation_has_only_what_the_problem_has():
    words = ["--problem", "darcy", "--ablation", "true", "--models", "mno-dct"]
    names = [options.name.removeprefix("table-darcy-mno-dct") for options in planned(table_options(*words))]
    assert names == [
        "-seed0",
        *(f"-without-{part}-seed0" for part in ("symmetries", "coordinates", "cells", "learning")),
    ]


def test_an_ablation_on_a_line_leaves_out_what_a_line_has(workplace):
    np.savez("line.npz", u=np.random.default_rng(0).standard_normal((8, 5, 16)))
    words = ["--data", "line.npz", "--periodic", "x", "--preset", "smoke", "--ablation", "true"]
    wanted = list(planned(table_options(*words)))
    parts = [options.name.removeprefix("table-own-line-mno") for options in wanted]
    assert parts == [
        "-seed0",
        *(f"-without-{part}-seed0" for part in ("coordinates", "cells", "learning")),
    ]
    assert (wanted[-1].options["learn_x"], wanted[-1].options["learn_y"]) == ("fixed", None)


def test_a_table_refuses_what_cannot_be_built_before_it_trains_the_others(workplace, capsys):
    np.savez("two.npz", u=np.ones((8, 3, 8, 16)), v=np.ones((8, 3, 8, 16)))
    size = ["--num-train", "4", "--num-val", "2", "--num-test", "2", "--modes", "2"]
    words = ["--data", "two.npz", "--periodic", "x,y", "--preset", "smoke", *size]
    assert cli.run("python -m pde.table", {"": table}, words) == 2
    said = capsys.readouterr().err
    assert "unet cannot be built on 8 x 16 points" in said
    assert "TF-Net forecasts one field" in said
    assert said.endswith("--models mno,lfno,fno,fno-transport,ffno,resnet\n")
    assert not (workplace / "runs").exists()


def test_options_of_a_model_in_a_table_go_to_the_models_that_have_them():
    wanted = planned(
        table_options("--models", "mno,fno,unet", "--nus", "1e-3", "--modes", "8", "--groups", "5")
    )
    given = {options.model: options.options for options in wanted}
    assert (given["mno"]["modes"], given["mno"]["groups"]) == (8, 5)
    assert given["fno"]["modes"] == 8
    assert "groups" not in given["fno"]
    assert given["unet"] == {}


@pytest.mark.parametrize("problem", NEW)
def test_table_compares_fixed_padded_and_learned(problem):
    wanted = list(planned(table_options("--problem", problem, "--seeds", "2", "--minutes", "3")))
    names = [options.name for options in wanted]
    geometry = PROBLEMS[problem].geometry
    assert len(set(names)) == len(names) == 2 * len(comparison(geometry, PROBLEMS[problem].static))
    right = geometry.transforms[0]
    options = {each.name: each for each in wanted}
    assert options[f"table-{problem}-fno-padded-seed0"].options["padding"] == 0.125
    assert options[f"table-{problem}-lfno-{right}-seed1"].options["start"] == right
    learned = options[f"table-{problem}-mno-{right}-seed0"]
    assert (learned.model, learned.options["start"]) == ("mno", right)
    assert (learned.options["form"] == "grid") == isinstance(geometry, Sphere)
    assert learned.options["transform_lr"] == 0.1  # the preset's, for the models whose transforms learn
    assert {each.minutes for each in wanted} == {3}


def test_table_skips_what_is_finished(flow_file, workplace, capsys):
    size = ["--num-train", "4", "--num-val", "2", "--num-test", "2", "--width", "4", "--modes", "3"]
    words = [
        "--preset",
        "smoke",
        "--models",
        "fno",
        "--nus",
        "1e-2",
        "--data",
        str(flow_file),
        "--minutes",
        "0.002",
    ]
    for said in ("run 1/1, table-nu1e-2-fno-seed0\n", "run 1/1, table-nu1e-2-fno-seed0: finished before"):
        assert run("python -m pde.table", {"": table}, [*words, *size]) == 0
        assert said in capsys.readouterr().out
    assert (workplace / "runs" / "pde" / "table-results" / "table.md").is_file()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "mon"], "there is no model 'mon' (did you mean mno?)"),
        (["--data", "nowhere.h5"], "nowhere.h5"),
        (["--model", "unet", "--modes", "3"], "--modes does nothing with --model unet"),
        (["--form", "grid", "--twin", "ffno"], "leave --twin ffno out"),
        (["--latent", "32", "--twin", "fno"], "belongs to the twin latent"),
        (["--cells", "true", "--twin", "fno"], "leave --twin fno out"),
        (["--expansion", "4"], "add --twin ffno"),
        (["--minutes", "0"], "--minutes must be above 0"),
    ],
)
def test_mistakes_get_one_sentence_and_status_2(words, sentence, workplace, capsys):
    assert run("python -m pde.train", {"": train}, ["--preset", "smoke", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_a_viscosity_that_the_file_does_not_tell_is_said(train_flow, make_flow, workplace, capsys):
    fields = open_fields(make_flow())
    told = {"u": fields.load()[..., 0].numpy(), "t": fields.times.numpy()}
    savemat("ns_data_V100_N10_T13.mat", told)
    words = ["--model", "fno", "--width", "4", "--modes", "3"]
    assert train_flow(*words, "--data", "ns_data_V100_N10_T13.mat") == 0
    assert "does not state its nu; tables list it under 0.01, from --nu" in capsys.readouterr().out
    assert train_flow(*words) == 0
    assert "does not tell" not in capsys.readouterr().out


def test_foreign_data_file_is_refused(workplace, capsys):
    Path("notes.h5").write_text("not HDF5")
    assert run("python -m pde.train", {"": train}, ["--preset", "smoke", "--data", "notes.h5"]) == 2
    assert "notes.h5" in capsys.readouterr().err


def test_too_few_samples_are_counted(train_flow, capsys):
    assert train_flow("--num-train", "40") == 2
    assert "offers 10 samples" in capsys.readouterr().err


def test_eval_without_runs_says_how_to_get_one(evaluation, capsys):
    assert evaluation() == 2
    assert "python -m pde.train" in capsys.readouterr().err


def test_eval_of_a_problem_without_runs_says_how_to_get_one(train_flow, evaluation, capsys):
    assert train_flow("--model", "fno", "--width", "4", "--modes", "3") == 0
    assert evaluation("--problem", "darcy") == 2
    assert "python -m pde.train --problem darcy" in capsys.readouterr().err


def test_eval_refuses_weights_that_are_not(evaluation, workplace, capsys):
    Path("weights.safetensors").write_text("no")
    assert evaluation("--weights", "weights.safetensors", "--data", "nowhere.h5") == 2
    assert "weights.safetensors is not a whole safetensors file" in capsys.readouterr().err
