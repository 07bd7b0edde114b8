"""Forecasts of the test samples and their errors, from weights files or finished runs."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.fields.layout import Grid
from data.fields.reader import Fields
from lab import weights
from lab.console import say
from lab.errors import UserError
from lab.gather import FinishedRun
from pde.config import MODEL_OPTIONS, DataConfig, EvalConfig, TrainConfig
from pde.forecaster import Predictor, from_weights
from pde.metrics import error_per_frame, relative_error
from pde.problems import DEFAULT, PROBLEMS, Problem
from pde.sources import Samples, Split, load, open_samples


@dataclass
class Evaluation:
    """One trained model on the test samples."""

    problem: Problem
    grid: Grid
    fields: tuple[str, ...]
    """The names of the fields."""
    name: str
    model: str
    variant: str
    """The options in which it differs from other runs of the same model; empty for the defaults."""
    options: dict[str, Any]
    """All options of the network."""
    nu: float | None
    seed: int
    parameters: int
    steps: int | None
    """Steps of its training."""
    minutes: float | None
    """Wall-clock time of its training."""
    seconds_per_pass: float | None
    """Time of its training, validations included, by passes over the training data."""
    errors: Tensor
    """Relative error of each test sample, over the whole forecast."""
    per_frame: Tensor
    """Relative error of each test sample and frame."""
    truth: Tensor
    """What was to be forecast (sample, row, column, frame, field)."""
    prediction: Tensor

    @property
    def label(self) -> str:
        """How tables and figures call it."""
        return f"{self.model}, {self.variant}" if self.variant else self.model

    @property
    def case(self) -> str:
        """The column of the table to which it belongs: a viscosity, or the problem."""
        return self.problem.name if self.nu is None else f"nu {self.nu:g}"


def evaluate(predictor: Predictor, samples: Samples, batch_size: int) -> Tensor:
    """What the model makes of all that is given: like `samples.wanted`."""
    predictor = predictor.at_resolution(samples.given.shape[1:3])
    frames = samples.wanted.shape[3]
    with torch.inference_mode():
        made = [predictor.predict(batch, frames) for batch in samples.given.split(batch_size)]
    return torch.cat(made)


def evaluate_runs(runs: Iterable[FinishedRun], config: EvalConfig) -> list[Evaluation]:
    """Every finished run on its own test samples, or all on those of `config.data`."""
    runs = list(runs)
    return [
        _evaluation(
            run.weights,
            *_test_samples(run, config),
            config,
            name=run.folder.name,
            variant=_variant(run, runs),
            seed=run.config["seed"],
            **_pace(run),
        )
        for run in runs
    ]


def evaluate_weights(config: EvalConfig) -> list[Evaluation]:
    """Every given weights file on the test samples of `config.data`."""
    problems = {weights.load(path).header.get("problem", DEFAULT) for path in config.weights}
    if len(problems) > 1:
        raise UserError(
            f"--weights of different problems ({', '.join(sorted(problems))}) share no test data."
        )
    assert config.data is not None
    (name,) = problems
    test, file = _from_file(config.data, PROBLEMS[name], config.num_test)
    several = len(config.weights) > 1
    return [
        _evaluation(path, test, file, config, name=str(path), variant=path.parent.name if several else "")
        for path in config.weights
    ]


def problem_of(run: FinishedRun) -> str:
    """The problem that a run was trained on."""
    return str(run.config.get("problem", DEFAULT))


def _evaluation(
    path: Path, samples: Samples, file: Fields, config: EvalConfig, name: str, variant: str, **known: Any
) -> Evaluation:
    loaded, problem = weights.load(path), PROBLEMS[file.problem]
    predictor = from_weights(loaded, str(path))
    parameters = sum(parameter.numel() for parameter in predictor.parameters())
    say(f"{name}: {len(samples.given)} forecasts")
    prediction = evaluate(predictor, samples, config.batch_size)
    measured = predictor.measured(prediction), predictor.measured(samples.wanted)
    return Evaluation(
        problem=problem,
        grid=file.grid,
        fields=file.names,
        name=name,
        model=loaded.header["model"],
        variant=variant,
        options=loaded.header["options"],
        nu=(file.parameters.get(problem.case) or loaded.header.get(problem.case)) if problem.case else None,
        parameters=parameters,
        errors=relative_error(*measured, file.grid.weights),
        per_frame=error_per_frame(*measured, file.grid.weights),
        truth=samples.wanted,
        prediction=prediction,
        seed=known.pop("seed", 0),
        steps=known.pop("steps", None),
        minutes=known.pop("minutes", None),
        seconds_per_pass=known.pop("seconds_per_pass", None),
    )


def _test_samples(run: FinishedRun, config: EvalConfig) -> tuple[Samples, Fields]:
    if config.data is not None:
        return _from_file(config.data, PROBLEMS[problem_of(run)], config.num_test)
    known = (field.name for field in fields(DataConfig))
    chosen = {key: run.config[key] for key in known if key in run.config}
    chosen["data"] = None if chosen["data"] is None else Path(chosen["data"])
    split = Split(DataConfig(**chosen))
    test = split.load(split.test)
    last = -(config.num_test or 0)
    return Samples(test.given[last:], test.wanted[last:]), split.test


COMPARED = (*MODEL_OPTIONS["mno"], "padding", "batch_norm", "recipe", "noise", "symmetries")
OF_TRANSFORMS = ("transform_lr", "transform_decay")
"""Options that do nothing where transforms do not learn, though a preset may set them."""
COMPARED_DATA = (
    "num_train",
    "resolution",
    "minutes",
    "epochs",
    "epoch_steps",
    "lr",
    "weight_decay",
    "schedule",
    "batch_size",
)


def _variant(run: FinishedRun, runs: list[FinishedRun]) -> str:
    same = [_asked(other) for other in runs if other.config["model"] == run.config["model"]]
    mine = _asked(run)
    compared = COMPARED + (OF_TRANSFORMS if run.config["model"] == "mno" else ()) + COMPARED_DATA
    always = {"start"} if PROBLEMS[problem_of(run)].geometry.transforms else set()
    varying = [key for key in compared if key in always or len({str(config.get(key)) for config in same}) > 1]
    defaults = {field.name: field.default for field in fields(TrainConfig)}
    chosen = {key: mine.get(key) for key in varying if mine.get(key) not in (None, defaults[key])}
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in chosen.items())


def _asked(run: FinishedRun) -> dict[str, Any]:
    """A run's options; the epochs and their steps are none where they follow from the minutes."""
    return run.config if run.config["minutes"] is None else run.config | {"epochs": None, "epoch_steps": None}


def _from_file(path: Path, problem: Problem, count: int | None) -> tuple[Samples, Fields]:
    fields = open_samples(path, problem)
    chosen = fields if count is None else fields.split(0, count)[1]
    return load(chosen), chosen


def _pace(run: FinishedRun) -> dict[str, Any]:
    last = run.metrics()[-1]
    steps = run.manifest.get("steps")  # a run without it is older: its epochs were passes
    passes = last["epoch"] if steps is None else last["step"] / steps["per_pass"]
    return {
        "steps": int(last["step"]),
        "minutes": last["seconds"] / 60,
        "seconds_per_pass": last["seconds"] / passes,
    }
