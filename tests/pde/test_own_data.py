"""A user's own file, from the raw arrays to tables and figures."""

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
import yaml

from data.fields.options import Told
from data.fields.reader import Fields, open_fields
from lab.cli import run
from lab.files import read_json
from lab.runs import finished_runs
from pde.config import EvalConfig, TrainConfig
from pde.figures import comparable, panels
from pde.predictor import load
from pde.problems import PROBLEMS, own_problem
from pde.scores import score_runs
from pde.tables import ratios_table, results_table
from pde.train import train
from tests.data.field_files import LINES, WRITERS, boundary

ONE_EACH = ["--num-train", "1", "--num-val", "1", "--num-test", "1"]
SIZE = ["--num-train", "4", "--num-val", "2", "--num-test", "2", "--width", "4", "--modes", "3"]


@pytest.fixture
def train_own(workplace: Path) -> Callable[..., int]:
    """`python -m pde.train --problem own` with a small model."""
    usual = ["--problem", "own", "--preset", "smoke", "--model", "fno", *SIZE]
    return lambda *words: run("python -m pde.train", {"": train}, [*usual, *map(str, words)])


@pytest.fixture
def trajectories(tmp_path: Path) -> Path:
    """Two fields (sample, time, x, y) on a rectangular grid."""
    values = np.random.default_rng(0).standard_normal((2, 8, 5, 12, 16))
    np.savez(tmp_path / "waves.npz", height=values[0], speed=values[1])
    return tmp_path / "waves.npz"


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    """An input of two fields and its answer."""
    values = np.random.default_rng(0).standard_normal((8, 12, 12, 2))
    with h5py.File(tmp_path / "maps.h5", "w") as file:
        file["inputs"], file["outputs"] = values, values.sum(-1)
    return tmp_path / "maps.h5"


@pytest.mark.parametrize("told", [("--periodic", "x,y"), ("--periodic", "x", "--walls", "y")])
def test_trajectories_go_from_arrays_to_figures(train_own, evaluation, trajectories, workplace, capsys, told):
    assert train_own("--data", trajectories, *told, "--frames-in", "2", "--name", "a") == 0
    said = capsys.readouterr().out
    assert "fields    height, speed" in said
    assert "grid      12 x 16" in said
    assert evaluation() == 0
    results = workplace / "runs" / "pde" / "results"
    assert (results / "table.csv").read_text().startswith("model,parameters,waves,")
    assert (results / "waves_sample0.png").is_file()
    assert "simulated" not in (results / "report.html").read_text()
    weights = workplace / "runs" / "pde" / "a" / "weights.safetensors"
    assert (
        evaluation(
            "--weights", str(weights), "--data", str(trajectories), "--out", "again", "--figures", "false"
        )
        == 0
    )
    assert load(weights).net.resolution == (12, 16)
    data = read_json(workplace / "runs" / "pde" / "a" / "manifest.json")["data"]
    assert (data["fields"], data["grid"]) == (["height", "speed"], [12, 16])


@pytest.mark.parametrize(
    "boundary", [("--periodic", "x,y"), ("--periodic", "x", "--walls", "y"), ("--walls", "x,y")]
)
@pytest.mark.parametrize("model", ["mno", "fno"])
def test_own_fields_are_carried_where_that_is_asked_for(
    train_own, evaluation, trajectories, workplace, boundary, model
):
    words = ("--data", trajectories, *boundary, "--frames-in", "2", "--name", "a")
    assert train_own(*words, "--model", model, "--transport", "true") == 0
    trained = load(workplace / "runs" / "pde" / "a" / "weights.safetensors")
    assert trained.net.transports
    learned = float(trained.net.transport.filters.detach().abs().max()) > 0
    assert learned == ("--walls" not in boundary)  # a filter suits a periodic box
    assert evaluation("--figures", "false") == 0
    horizons = (workplace / "runs" / "pde" / "results" / "horizons.csv").read_text()
    assert horizons.startswith("model,case,correlation 0.95,")


def test_weights_meet_data_of_their_own_kind_only(train_own, evaluation, workplace, capsys):
    """Fields that are missing would be filled by those that are there, and constants taken for fields."""
    u, v = np.random.default_rng(0).standard_normal((2, 8, 3, 8, 8))
    arrays = {
        "two": {"u": u, "v": v},
        "one": {"u": u},
        "constant": {"u": u, "c": u[:, 0]},
        "turned": {"v": v, "u": u},
        "map": {"inputs": u[:, :2].transpose(0, 2, 3, 1), "outputs": u[:, :2].transpose(0, 2, 3, 1)},
    }
    for name, each in arrays.items():
        np.savez(f"{name}.npz", **each)
    assert train_own("--data", "two.npz", "--periodic", "x,y", "--name", "a") == 0
    weights = ["--weights", str(workplace / "runs" / "pde" / "a" / "weights.safetensors")]
    for name, reason in {
        "one": "one.npz has u; give data with as many, in the same order",
        "constant": "error: a was trained on the fields u, v, and ",
        "turned": "turned.npz has v, u; give data",
        "map": "map.npz holds maps from an input to its answer; give other data",
    }.items():
        for which in (weights, []):
            words = ["--data", f"{name}.npz", "--figures", "false", "--out", "here"]
            assert evaluation(*words, *which) == 2
            assert reason in capsys.readouterr().err


def test_forecasts_from_other_frames_share_a_table_but_no_picture(train_own, workplace, trajectories):
    words = ("--data", trajectories, "--periodic", "x,y")
    assert train_own(*words, "--name", "a") == 0
    assert train_own(*words, "--model", "mno", "--recipe", "fno", "--frames-in", "2", "--name", "b") == 0
    results = score_runs(finished_runs(TrainConfig), EvalConfig(), workplace / "scores")
    assert [result.label for result in results] == ["mno, frames in 2", "fno, frames in 1"]
    table, ratios = results_table(results), ratios_table(results)
    assert table.caption.endswith(", 3 or 4 steps")
    assert ratios is not None
    assert ratios.rows[0]["p_waves"] is None  # not the same frames
    assert len(comparable(results, "waves")) == 1
    assert panels(comparable(results, "waves"), 0, workplace / "a.png").is_file()


def test_every_file_has_a_table_of_its_own(train_own, evaluation, maps, trajectories, workplace):
    assert train_own("--data", maps, "--walls", "x,y", "--name", "a") == 0
    assert train_own("--data", trajectories, "--periodic", "x,y", "--name", "b") == 0
    assert evaluation() == 0
    results = workplace / "runs" / "pde" / "results"
    for name in ("maps", "waves"):
        assert (results / f"own-{name}" / f"{name}_sample0.png").is_file()


def test_the_problem_is_what_the_file_says(maps, trajectories):
    found = own_problem(open_fields(maps, told=Told(walls="x,y")), 1)
    assert (found.static, found.shown, found.geometry.bounded) == (True, "outputs", (True, True))
    found = own_problem(open_fields(trajectories, told=Told(periodic="x,y")), 3)
    assert (found.static, found.shown, found.frames_in) == (False, "height", 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "does not say whether its fields are periodic; add --periodic x,y"),
        (("--periodic", "x,y", "--frames-in", "5"), "has 5 frames; a forecast needs more than the 5"),
        (("--periodic", "x,y", "--nu", "1e-5"), "--nu does nothing with --problem own."),
        (("--periodic", "x,y", "--padding", "0.1"), "nothing to pad"),
        (("--periodic", "x,y", "--recipe", "map"), "--recipe map does not suit --problem own"),
        (
            ("--problem", "navier-stokes"),
            "holds samples of own, not of navier-stokes; give another file or --problem own",
        ),
        (("--problem", "navier-stokes", "--walls", "x"), "--walls is for --problem own"),
        (("--periodic", "x,y", "--num-train", "7"), "offers 8 samples, fewer than 9"),
    ],
)
def test_mistakes_are_one_sentence(train_own, trajectories, workplace, capsys, words, message):
    assert train_own("--data", trajectories, *words) == 2
    assert message in capsys.readouterr().err
    assert not (workplace / "runs").exists()


def test_own_data_needs_a_file(train_own, capsys):
    assert train_own() == 2
    assert "--problem own needs --data" in capsys.readouterr().err


def command(*words: object) -> int:
    """`python -m pde.train` in seconds, without a problem."""
    usual = ["--preset", "smoke", "--width", "4", "--modes", "3", "--threads", "1"]
    return run("python -m pde.train", {"": train}, [*usual, *map(str, words)])


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_is_trained_on_and_evaluated_without_a_problem(kind, workplace, evaluation, capsys):
    path, _ = WRITERS[kind][0](workplace)
    known = open_fields(path)
    told = boundary(kind) if known.source.layout.unsaid else []
    assert command("--data", path, *told, *ONE_EACH, "--model", "fno", "--name", "a") == 0, (
        capsys.readouterr().err
    )
    config = yaml.safe_load((workplace / "runs" / "pde" / "a" / "config.yaml").read_text())
    assert config["problem"] == (known.problem if known.problem in PROBLEMS and not told else "own")
    assert evaluation("--figures", "false") == 0
    table = (workplace / "runs" / "pde" / "results" / "metrics.csv").read_text()
    assert table.splitlines()[0].startswith("model,rmse,nrmse,vrmse,boundary,maximum,low,middle,high")


@pytest.mark.parametrize("model", ["mno", "ffno"])
@pytest.mark.parametrize("kind", ["line", "line map"])
def test_lines_are_drawn(kind, model, workplace, evaluation):
    assert kind in LINES
    path, _ = WRITERS[kind][0](workplace)
    assert command("--data", path, "--periodic", "x", *ONE_EACH, "--model", model, "--name", "a") == 0
    assert evaluation() == 0
    results = workplace / "runs" / "pde" / "results"
    assert (results / f"{path.stem}_sample0.png").is_file()
    assert not list(results.glob("*.gif"))
    assert (results / "report.html").is_file()


def test_symmetries_that_the_data_declares_are_trained_with(workplace, capsys):
    path, _ = WRITERS["zarr"][0](workplace)
    assert command("--data", path, *ONE_EACH, "--symmetries", "--name", "a") == 0
    assert "keeps     mirror x, turn y" in capsys.readouterr().out
    path, _ = WRITERS["line"][0](workplace)
    words = ("--data", path, "--periodic", "x", *ONE_EACH, "--symmetries")
    assert command(*words) == 2
    assert "--symmetries: none are known for own" in capsys.readouterr().err
    assert command(*words, "--keeps", "mirror x:u,turn x", "--name", "b") == 0


def test_forecasts_are_averaged_over_symmetries_that_the_data_declares(workplace, evaluation):
    path, _ = WRITERS["zarr"][0](workplace)
    assert command("--data", path, *ONE_EACH, "--name", "a") == 0
    assert evaluation("--average-symmetries", "4", "--figures", "false") == 0


def test_constants_reach_the_network(workplace):
    path, _ = WRITERS["line"][0](workplace)
    assert command("--data", path, "--periodic", "x", *ONE_EACH, "--name", "a") == 0
    predictor = load(workplace / "runs" / "pde" / "a" / "weights.safetensors")
    assert (predictor.constants, predictor.net.in_channels) == (2, 3)
    given = torch.randn(2, 8, 1, 1, 3)
    other = given.clone()
    other[..., 2] += 1.0
    first, second = predictor.predict(given, 3), predictor.predict(other, 3)
    assert first.shape == (2, 8, 1, 3, 1)
    assert not torch.allclose(first, second)


def test_reading_on_demand_trains_the_same_model(workplace, monkeypatch):
    """Frame by frame from the file, and never more of it at a time than two frames or one sample."""
    path, values = WRITERS["forced"][0](workplace)
    words = ("--data", path, "--periodic", "x,y", *ONE_EACH)
    assert command(*words, "--name", "held") == 0
    sizes = []
    whole = Fields._checked
    monkeypatch.setattr(
        Fields, "_checked", lambda self, i, read: (sizes.append(read.size), whole(self, i, read))[1]
    )
    monkeypatch.setattr(
        Fields, "load", lambda self: pytest.fail("all samples were read") if len(self) > 1 else one(self)
    )
    assert command(*words, "--memory-gb", "0", "--name", "read") == 0
    assert max(sizes) == values[0].size
    held, read = (
        load(workplace / "runs" / "pde" / name / "weights.safetensors") for name in ("held", "read")
    )
    for key, value in held.state_dict().items():
        assert torch.allclose(read.state_dict()[key], value, atol=1e-4), key


def one(fields: Fields) -> torch.Tensor:
    return fields[0][None]
