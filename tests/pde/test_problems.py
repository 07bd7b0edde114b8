"""Walls and the sphere: every problem from data to table, and the figures that say where an operator errs."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from pde.evaluate import Evaluation
from pde.forecaster import from_weights
from pde.models.legendre import quadrature
from pde.profile import error_profile, places_table
from pde.targets import targets_table
from torch import Tensor

from data.fields.generator import generate
from data.fields.geometry import Sphere
from data.fields.layout import Grid
from lab import cli, weights
from lab.cli import run
from lab.config import as_plain_dict
from lab.errors import UserError
from lab.files import read_json
from lab.presets import read_preset
from lab.table import Score
from pde.config import TableConfig, TrainConfig
from pde.eval import evaluate
from pde.problems import PROBLEMS
from pde.sources import Split
from pde.table import runs
from pde.train import train

NEW = ["darcy", "burgers-walls", "shallow-water"]
SMALL: dict[str, dict[str, Any]] = {
    "darcy": {},
    "burgers-walls": {"frames": 4},
    "shallow-water": {"frames": 4, "spin_up": 0},
}
Files = Callable[[str], Path]


@pytest.fixture(scope="session")
def field_file(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Eight small samples of a problem, made once."""
    folder = tmp_path_factory.mktemp("fields")

    def made(problem: str) -> Path:
        path = folder / f"{problem}.h5"
        if not path.exists():
            options = import_module(f"{PROBLEMS[problem].package}.config").GenerateConfig
            generate(options(num_samples=8, resolution=16, workers=1, out=path, **SMALL[problem]))
        return path

    return made


def train_small(problem: str, file: Path, *words: str) -> int:
    size = ["--num-train", "4", "--num-val", "2", "--num-test", "2", "--width", "4", "--modes", "3"]
    preset = ["--problem", problem, "--preset", "smoke", "--resolution", "null"]
    return run("python -m pde.train", {"": train}, [*preset, *size, "--data", str(file), *words])


@pytest.mark.parametrize("problem", NEW)
def test_every_problem_goes_from_data_to_table(problem: str, field_file: Files, workplace: Path) -> None:
    file, right = field_file(problem), PROBLEMS[problem].geometry.transforms[0]
    assert train_small(problem, file, "--model", "fno", "--padding", "0.125", "--name", "padded") == 0
    assert train_small(problem, file, "--model", "lfno", "--start", right, "--name", "fixed") == 0
    assert train_small(problem, file, "--form", "grid", "--start", right, "--name", "mno") == 0
    assert run("python -m pde.eval", {"": evaluate}, []) == 0
    results = workplace / "runs" / "pde" / "results" / problem
    steps = set() if problem == "darcy" else {"errors.png", f"{problem}_sample0.gif"}
    pictures = {"places.png", f"{problem}_sample0.png"} | steps
    assert {path.name for path in results.iterdir() if path.suffix in (".png", ".gif")} == pictures
    assert (results / "targets.md").is_file()
    assert "![places](places.png)" in (results / "report.md").read_text()
    lines = (results / "table.csv").read_text().splitlines()
    assert lines[0].startswith(f"model,parameters,{problem},{problem}_se,{problem}_n")
    assert [line.split(",parameters")[0].split(",")[0].strip('"') for line in lines[1:]] == [
        "mno",
        "lfno",
        "fno",
    ]
    data = read_json(workplace / "runs" / "pde" / "mno" / "manifest.json")["data"]
    assert data["problem"] == problem
    assert data["samples"] == {"train": [0, 4], "validation": [4, 6], "test": [6, 8]}


def test_sfno_and_padding_see_the_sphere_as_it_is(field_file: Files, workplace: Path) -> None:
    file = field_file("shallow-water")
    assert train_small("shallow-water", file, "--model", "sfno", "--name", "sfno") == 0
    assert train_small("shallow-water", file, "--model", "fno", "--padding", "0.25", "--name", "padded") == 0
    loaded = weights.load(workplace / "runs" / "pde" / "sfno" / "weights.safetensors")
    assert loaded.header["options"]["latitudes"] == "legendre-gauss"
    assert (loaded.header["in_channels"], loaded.header["fields"]) == (3, 3)
    assert tuple(from_weights(loaded).net.resolution) == (16, 32)
    padded = weights.load(workplace / "runs" / "pde" / "padded" / "weights.safetensors")
    assert padded.header["options"]["padding"] == [4, 0]  # beyond the pole; longitudes are periodic


def test_problems_do_not_share_a_table(field_file: Files, workplace: Path) -> None:
    for problem in ("darcy", "burgers-walls"):
        assert train_small(problem, field_file(problem), "--model", "fno", "--name", problem) == 0
    assert run("python -m pde.eval", {"": evaluate}, ["--figures", "false"]) == 0
    for problem in ("darcy", "burgers-walls"):
        text = (workplace / "runs" / "pde" / "results" / problem / "table.csv").read_text()
        assert text.splitlines()[0].split(",")[2] == problem
        assert len(text.splitlines()) == 2
    words = ["--problem", "darcy", "--out", "here", "--figures", "false"]
    assert run("python -m pde.eval", {"": evaluate}, words) == 0
    written = {path.name for path in Path("here").iterdir()}
    tables = {f"{name}.{suffix}" for name in ("table", "places") for suffix in ("csv", "md", "tex")}
    assert written == {"per_sample.csv", "report.md"} | tables


def test_weights_meet_their_own_problem_only(
    field_file: Files, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train_small("darcy", field_file("darcy"), "--model", "fno", "--name", "a") == 0
    trained = str(workplace / "runs" / "pde" / "a" / "weights.safetensors")
    words = ["--weights", trained, "--figures", "false", "--out", "here", "--data"]
    assert run("python -m pde.eval", {"": evaluate}, [*words, str(field_file("darcy"))]) == 0
    assert run("python -m pde.eval", {"": evaluate}, [*words, str(field_file("burgers-walls"))]) == 2
    assert "holds samples of burgers-walls, not of darcy" in capsys.readouterr().err


def test_split_of_a_map_pairs_inputs_with_answers(field_file: Files) -> None:
    config = TrainConfig(problem="darcy", data=field_file("darcy"), num_train=4, num_val=2, num_test=2)
    split = Split(config)
    given, wanted = split.load(split.train)
    assert config.recipe == "map"
    assert set(given.unique().tolist()) == {3.0, 12.0}  # the two permeabilities
    assert given.shape == wanted.shape == (4, 16, 16, 1, 1)
    assert float(wanted.min()) > 0  # a pressure with a source everywhere


def test_shallow_water_rows_have_weights_of_mean_one(field_file: Files) -> None:
    config = TrainConfig(
        problem="shallow-water", data=field_file("shallow-water"), num_train=4, num_val=2, num_test=2
    )
    grid = Split(config).grid
    assert grid.weights is not None
    assert float(grid.weights.mean()) == pytest.approx(1.0, abs=1e-6)
    assert grid.geometry == Sphere("legendre-gauss")


def walls(points: int) -> Grid:
    return Grid.of(PROBLEMS["darcy"].geometry, points)


def evaluation(problem: str, grid: Grid, truth: Tensor, wrong: Tensor, **known: Any) -> Evaluation:
    given = {"model": "fno", "options": {}, "seed": 0, "errors": torch.zeros(len(truth))} | known
    return Evaluation(
        problem=PROBLEMS[problem],
        grid=grid,
        fields=("a", "b", "c")[: truth.shape[-1]],
        name="a",
        variant="",
        nu=None,
        parameters=1,
        steps=1,
        minutes=2.0,
        seconds_per_pass=1.0,
        per_frame=torch.zeros(len(truth), 1),
        truth=truth,
        prediction=truth + wrong,
        **given,
    )


def test_targets_compare_learned_with_fixed_over_all_seeds() -> None:
    field = torch.ones(1, 4, 4, 1, 1)

    def trained(model: str, error: float, start: str, **others: Any) -> Evaluation:
        options = {"start": start, **others}
        known = {"model": model, "options": options, "errors": torch.tensor([error])}
        return evaluation("darcy", walls(4), field, field, **known)

    made = [
        trained("fno", 0.2, "dft"),
        trained("fno", 0.4, "dft"),
        trained("fno", 0.01, "dft", padding=(8, 8)),  # padded: not what is compared with
        trained("mno", 0.1, "dft"),
        trained("mno", 0.26, "dft"),
        trained("lfno", 0.1, "dst"),
        trained("mno", 0.11, "dst", twin="latent"),
        trained("mno", 0.15, "dft", twin="fno"),  # FNO's own architecture: a row of its own
    ]
    table = targets_table(made)
    assert table is not None
    first, swapped, second = table.rows
    values = [row["value"] for row in table.rows if isinstance(row["value"], Score)]
    assert [value.mean for value in values] == pytest.approx([0.18 / 0.3, 0.15 / 0.3, 1.1])
    # Of independent errors: (0.08 / 0.18)² + (0.1 / 0.3)², times the ratio.
    assert values[0].error == pytest.approx(0.6 * ((0.08 / 0.18) ** 2 + (0.1 / 0.3) ** 2) ** 0.5)
    assert values[1].error is None
    assert swapped["ratio"] == "mno, twin fno, start dft / fno, start dft"
    assert (first["target"], first["reached"]) == ("0.75", "yes")
    assert (second["target"], second["reached"]) == ("below 1", "no")


def test_profile_finds_the_error_at_the_wall() -> None:
    truth = torch.randn(4, 8, 8, 3, 1)
    wrong = torch.zeros_like(truth)
    wrong[:, 0], wrong[:, -1], wrong[:, :, 0], wrong[:, :, -1] = 2.0, 2.0, 2.0, 2.0
    places, errors = error_profile(evaluation("darcy", walls(8), truth, wrong))
    assert places.tolist() == pytest.approx([0.0625, 0.1875, 0.3125, 0.4375])
    assert errors.tolist() == pytest.approx([2.0 / float(truth.std()), 0.0, 0.0, 0.0], rel=1e-5)


def test_places_are_regions_of_walls_and_of_the_sphere() -> None:
    truth = torch.randn(2, 32, 32, 3, 1)
    wrong = torch.zeros_like(truth)
    wrong[:, :2] = 1.0  # two of the lines next to one wall of four: 64 points of the 240 within 1/16
    made = [evaluation("darcy", walls(32), truth, wrong * seed, seed=seed) for seed in (1, 3)]
    (row,) = places_table(made).rows
    scores = [score for score in row.values() if isinstance(score, Score)]
    once = (64 / 240) ** 0.5 / float(truth.std())
    assert [score.mean for score in scores] == pytest.approx([2 * once, 0.0, 0.0], rel=1e-5)
    assert [score.count for score in scores] == [2, 2, 2]

    _, weights = quadrature("legendre-gauss", 12)
    field = torch.randn(2, 12, 24, 1, 1)
    wrong = torch.zeros_like(field)
    wrong[:, 1] = (
        1.0  # of two latitudes beyond 60 degrees in each hemisphere, the outer one of the north is right
    )
    (row,) = places_table([evaluation("shallow-water", Grid.of(Sphere(), 12, 24), field, wrong)]).rows
    beyond = [score for score in row.values() if isinstance(score, Score)]
    share = float(weights[1] / (2 * weights[:2].sum())) ** 0.5
    assert [score.mean for score in beyond] == pytest.approx([share / float(field.std()), 0.0, 0.0], rel=1e-5)


def test_profile_of_the_sphere_goes_by_latitude() -> None:
    theta = torch.tensor([0.3, 1.2, 1.9, 2.8])
    truth = torch.randn(4, 4, 8, 3, 2)
    wrong = torch.zeros_like(truth)
    wrong[:, 0] = truth.flatten(0, 3).std(0)  # the northernmost row
    places, errors = error_profile(
        evaluation("shallow-water", Grid(Sphere(), theta, torch.arange(8.0)), truth, wrong)
    )
    assert places.tolist() == pytest.approx([90 - 180 / torch.pi * t for t in (2.8, 1.9, 1.2, 0.3)], abs=1e-3)
    assert errors.tolist() == pytest.approx([0.0, 0.0, 0.0, 1.0], rel=1e-5)


@pytest.mark.parametrize("problem", NEW)
@pytest.mark.parametrize("name", ["paper", "laptop", "smoke"])
def test_every_preset_is_valid_and_differs_from_the_defaults(problem: str, name: str) -> None:
    values = read_preset(f"pde/{problem}", name)
    config = cli.parse(TrainConfig, ["--problem", problem, "--preset", name], prog="x")
    assert {key: getattr(config, key) for key in values} == values
    defaults = as_plain_dict(TrainConfig())
    assert {key for key, value in values.items() if defaults[key] == value} == set()


def test_presets_of_the_default_problem_stay_in_their_place() -> None:
    by_name = cli.parse(TrainConfig, ["--problem", "navier-stokes", "--preset", "laptop"], prog="x")
    assert by_name == cli.parse(TrainConfig, ["--preset", "laptop"], prog="x")


@pytest.mark.parametrize("problem", NEW)
def test_table_compares_fixed_padded_and_learned(problem: Any) -> None:
    wanted = list(runs(TableConfig(problem=problem, seeds=2, minutes=3)))
    names = [options.name for options in wanted]
    assert len(set(names)) == len(names) == 2 * len(PROBLEMS[problem].comparison())
    right = PROBLEMS[problem].geometry.transforms[0]
    options = {o.name: o for o in wanted}
    assert options[f"table-{problem}-fno-padded-seed0"].padding == 0.125
    assert options[f"table-{problem}-lfno-{right}-seed1"].start == right
    learned = options[f"table-{problem}-mno-{right}-seed0"]
    assert (learned.model, learned.form, learned.start) == ("mno", "grid", right)
    assert {o.num_test for o in wanted} == {read_preset(f"pde/{problem}", "laptop")["num_test"]}
    assert {o.minutes for o in wanted} == {3}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"padding": 0.1, "model": "fno"}, "nothing to pad"),
        ({"padding": 1.5, "model": "fno", "problem": "darcy"}, "between 0 and 1"),
        ({"padding": 0.1, "model": "mno", "problem": "darcy"}, "--padding does nothing with --model mno"),
        ({"start": "sht", "form": "grid"}, "needs --problem shallow-water"),
        ({"model": "sfno", "problem": "darcy"}, "needs --problem shallow-water"),
        ({"start": "sht", "problem": "shallow-water"}, "add --form grid"),
        ({"recipe": "fno", "problem": "darcy"}, "an input has one answer"),
        ({"recipe": "fno", "problem": "shallow-water"}, "starts from its first"),
        ({"recipe": "map"}, "frames follow each other"),
        ({"nu": 1e-5, "problem": "darcy"}, "--nu does nothing with --problem darcy"),
        ({"model": "fno", "start": "random"}, "take --model mno"),
    ],
)
def test_what_does_not_fit_together_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        TrainConfig(**options)


def test_table_names_the_models_it_has() -> None:
    with pytest.raises(UserError, match="the table of darcy has fno, fno-padded"):
        TableConfig(problem="darcy", models=["unet"])


def test_eval_of_a_problem_without_runs_says_how_to_get_one(
    flow_file: Path, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--preset", "smoke", "--nu", "1e-2", "--data", str(flow_file), "--model", "fno"]
    assert run("python -m pde.train", {"": train}, [*words, "--width", "4", "--modes", "3"]) == 0
    capsys.readouterr()
    assert run("python -m pde.eval", {"": evaluate}, ["--problem", "darcy"]) == 2
    assert "python -m pde.train --problem darcy" in capsys.readouterr().err
