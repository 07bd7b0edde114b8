"""Options: what does not fit together is refused in one sentence, and presets say only what differs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab import cli
from lab.config import defaults
from lab.errors import UserError
from lab.presets import read_preset
from pde.config import EvalConfig, TableConfig, TrainConfig
from pde.models.__main__ import ListConfig
from pde.problems import PROBLEMS

NEW = [name for name in PROBLEMS if name != TrainConfig.problem]


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ["paper", "laptop", "smoke"])
def test_every_preset_is_valid_and_differs_from_the_defaults(problem, name):
    values = read_preset("pde" if problem not in NEW else f"pde/{problem}", name)
    config = cli.parse(TrainConfig, ["--problem", problem, "--preset", name], prog="x")
    assert {
        key: config.options[key] if key in config.options else getattr(config, key) for key in values
    } == values
    usual = defaults(TrainConfig, config.model)
    assert {key for key, value in values.items() if usual[key] == value} == set()


def test_the_benchmark_is_that_of_fno_in_its_data():
    config = cli.parse(TrainConfig, ["--preset", "benchmark", "--nu", "1e-5", "--minutes", "90"], prog="x")
    assert (config.num_train, config.num_test, config.max_grid, config.recipe) == (1000, 200, 256, "markov")
    assert (config.symmetries, config.batch_size, config.threads) == (True, 10, 1)
    with pytest.raises(UserError, match="pde/darcy has no preset 'benchmark'"):
        cli.parse(TrainConfig, ["--problem", "darcy", "--preset", "benchmark"], prog="x")


def test_filters_belong_to_transport():
    options = {"transport": False, "filter": "none"}
    with pytest.raises(UserError, match="--filter none is for fields that are carried"):
        TrainConfig(options=options)


def test_parity_belongs_to_fields_that_are_carried_between_walls():
    with pytest.raises(UserError, match="--parity odd is for fields between walls"):
        TrainConfig(options={"parity": "odd"})
    with pytest.raises(UserError, match="--parity even is for fields that are carried"):
        TrainConfig(problem="burgers-walls", options={"transport": False, "parity": "even"})


def test_presets_of_the_default_problem_stay_in_their_place():
    by_name = cli.parse(TrainConfig, ["--problem", "navier-stokes", "--preset", "laptop"], prog="x")
    assert by_name == cli.parse(TrainConfig, ["--preset", "laptop"], prog="x")


def test_a_preset_passes_over_models_that_lack_its_option():
    config = cli.parse(TrainConfig, ["--problem", "darcy", "--preset", "laptop", "--model", "fno"], prog="x")
    assert "transform_lr" not in config.options


def test_a_map_is_trained_as_one():
    assert TrainConfig(problem="darcy").recipe == "map"


def model(name: str, **options: Any) -> dict[str, Any]:
    return {"model": name, "options": options}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (model("fno", padding=0.1), "nothing to pad"),
        (model("fno", padding=1.5) | {"problem": "darcy"}, "between 0 and 1"),
        (model("mno", padding=0.1) | {"problem": "darcy"}, "--padding does nothing with --model mno"),
        (model("mno", start="sht", form="grid"), "only works on the sphere, such as --problem shallow-water"),
        (model("sfno") | {"problem": "darcy"}, "only works on the sphere, such as --problem shallow-water"),
        (model("mno", start="sht", form="monarch") | {"problem": "shallow-water"}, "add --form grid"),
        (model("mno", shear=True) | {"problem": "burgers-walls"}, "--shear works along x [+] y of a box"),
        (model("fno", coordinates="diagonal") | {"problem": "darcy"}, "--coordinates diagonal works along"),
        (model("fno", transport=True) | {"problem": "darcy"}, "nothing is carried in darcy"),
        (model("mno", transform_from=1.5), "--transform-from is a share of the training, 0 to 1, not 1.5"),
        (model("mno", form="per-frequency", groups=2), "one group of channels: leave --groups out"),
        (model("fno", start="random"), "take --model mno"),
        (model("fno", groups=2), "--groups does nothing with --model fno; it belongs to mno"),
        (model("fno", widht=2), "no model has an option --widht"),
        (model("fno", width=0), "--width must be at least 1, not 0"),
        (model("fno", start="fft"), "--start takes one of dft, dct, dst, sht, random, not 'fft'"),
        ({"recipe": "fno", "problem": "darcy"}, "an input has one answer"),
        ({"recipe": "fno", "problem": "shallow-water"}, "starts from its first"),
        ({"recipe": "map"}, "frames follow each other"),
        ({"nu": 1e-5, "problem": "darcy"}, "--nu does nothing with --problem darcy"),
        ({"first_frame": -1}, "--first-frame must be at least 0"),
        ({"first_frame": 3, "recipe": "fno"}, "--first-frame does nothing with --recipe fno"),
        ({"first_frame": 3, "problem": "darcy"}, "--first-frame does nothing with --recipe map"),
    ],
)
def test_what_does_not_fit_together_is_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        TrainConfig(**options)


@pytest.mark.parametrize(
    ("words", "settled"),
    [
        (
            [],
            {
                "transport": True,
                "filter": "diagonal",
                "coordinates": "diagonal",
                "shear": True,
                "form": "per-frequency",
                "modes_y": 16,
            },
        ),
        (["--transport", "false", "--coordinates", "plain"], {"transport": False, "coordinates": "plain"}),
        (["--shear", "false", "--form", "grid"], {"shear": False, "form": "grid"}),
        (["--modes", "8"], {"modes": 8, "modes_y": None}),
        (["--modes", "8", "--modes-y", "10"], {"modes_y": 10}),
        (["--groups", "5"], {"form": "separable", "shear": True}),
        (["--twin", "ffno"], {"form": "separable", "shear": False, "modes_y": None, "transport": True}),
        (["--model", "fno"], {"transport": False, "coordinates": "diagonal"}),
        (["--problem", "darcy"], {"transport": None, "coordinates": "geometry", "form": None}),
        (["--problem", "shallow-water"], {"transport": False, "coordinates": "geometry", "shear": None}),
        (["--problem", "shallow-water", "--transport", "true"], {"transport": True, "filter": "none"}),
        (["--problem", "burgers-walls"], {"transport": True, "filter": "diagonal", "parity": "odd"}),
        (["--problem", "burgers-walls", "--filter", "monarch"], {"transport": True, "filter": "monarch"}),
    ],
)
def test_what_is_left_open_suits_the_problem_and_what_is_chosen_stays(words, settled):
    config = cli.parse(TrainConfig, words, prog="x")
    assert {key: config.options[key] for key in settled} == settled
    assert replace(config) == config  # and settling again changes nothing


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "fno"], "a table takes --models, not --model"),
        (["--seed", "3"], "a table takes --seeds, not --seed"),
        (["--name", "mine"], "a table takes --prefix, not --name"),
        (["--nu", "1e-5"], "a table takes --nus, not --nu: add --nus 1e-05"),
        (["--problem", "darcy", "--nus", "1e-5"], "--nus does nothing with --problem darcy"),
    ],
)
def test_a_table_refuses_options_of_a_single_run(words, sentence):
    with pytest.raises(UserError, match=sentence):
        cli.parse(TableConfig, ["--preset", "laptop", *words], prog="x")


def test_the_problem_of_weights_is_their_own():
    with pytest.raises(UserError, match="with --weights, leave it out"):
        EvalConfig(problem="darcy", weights=[Path("weights.safetensors")], data=Path("darcy.h5"))


def test_a_list_of_models_needs_a_grid():
    with pytest.raises(UserError, match="--resolution must be at least 4, not 0"):
        ListConfig(resolution=0)


def test_table_names_the_models_it_has():
    with pytest.raises(UserError, match=r"the table of darcy has mno-dft, .* not unet"):
        TableConfig(problem="darcy", models=["unet"])
