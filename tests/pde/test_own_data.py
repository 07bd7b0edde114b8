"""A user's own file, from the raw arrays to tables and figures."""

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from data.fields.options import Told
from data.fields.reader import open_fields
from lab.cli import run
from lab.files import read_json
from pde.predictor import load
from pde.problems import own_problem
from pde.train import train

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


@pytest.mark.parametrize("boundary", [("--periodic", "x,y"), ("--periodic", "x", "--walls", "y")])
def test_trajectories_go_from_arrays_to_figures(
    train_own, evaluation, trajectories, workplace, capsys, boundary
):
    assert train_own("--data", trajectories, *boundary, "--frames-in", "2", "--name", "a") == 0
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
    assert float(trained.net.transport.filter.detach().abs().max()) > 0  # it has learned
    assert evaluation("--figures", "false") == 0
    horizons = (workplace / "runs" / "pde" / "results" / "horizons.csv").read_text()
    assert horizons.startswith("model,case,correlation 0.95,")


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
