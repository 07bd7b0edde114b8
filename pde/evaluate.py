"""Forecasts of the test samples and their errors, from weights files or finished runs."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.navier_stokes.reader import open_trajectories
from lab import weights
from lab.console import say
from lab.errors import UserError
from lab.gather import FinishedRun
from pde.config import FRAMES_IN, MODEL_OPTIONS, DataConfig, EvalConfig, TrainConfig
from pde.forecaster import Forecaster, from_weights
from pde.metrics import error_per_frame, relative_error
from pde.sources import Split


@dataclass
class Evaluation:
    """One trained model on the test samples."""

    name: str
    model: str
    variant: str
    """The options in which it differs from other runs of the same model; empty for the defaults."""
    nu: float
    seed: int
    parameters: int
    seconds_per_epoch: float | None
    epochs: int | None
    errors: Tensor
    """Relative error of each test sample, over the whole forecast."""
    per_frame: Tensor
    """Relative error of each test sample and frame."""
    truth: Tensor
    """The frames that were to be forecast (sample, x, y, frame)."""
    prediction: Tensor

    @property
    def label(self) -> str:
        """How tables and figures call it."""
        return f"{self.model}, {self.variant}" if self.variant else self.model


def evaluate(forecaster: Forecaster, trajectories: Tensor, batch_size: int) -> tuple[Tensor, Tensor]:
    """Truth and forecast of all frames after the first ten, each (sample, x, y, frame)."""
    if trajectories.shape[-1] <= FRAMES_IN:
        raise UserError(f"the data has {trajectories.shape[-1]} frames; a forecast starts from {FRAMES_IN}.")
    forecaster = forecaster.at_resolution(trajectories.shape[1])
    with torch.inference_mode():
        forecasts = [forecaster.forecast(batch) for batch in trajectories.split(batch_size)]
    return trajectories[..., FRAMES_IN:], torch.cat(forecasts)


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
    assert config.data is not None
    test, nu = _from_file(config.data, config.num_test)
    several = len(config.weights) > 1
    return [
        _evaluation(path, test, nu, config, name=str(path), variant=path.parent.name if several else "")
        for path in config.weights
    ]


def _evaluation(
    path: Path,
    trajectories: Tensor,
    nu: float | None,
    config: EvalConfig,
    name: str,
    variant: str,
    **known: Any,
) -> Evaluation:
    loaded = weights.load(path)
    forecaster = from_weights(loaded, str(path))
    parameters = sum(parameter.numel() for parameter in forecaster.parameters())
    say(f"{name}: {len(trajectories)} forecasts")
    truth, prediction = evaluate(forecaster, trajectories, config.batch_size)
    return Evaluation(
        name=name,
        model=loaded.header["model"],
        variant=variant,
        nu=nu or loaded.header["nu"],
        parameters=parameters,
        errors=relative_error(prediction, truth),
        per_frame=error_per_frame(prediction, truth),
        truth=truth,
        prediction=prediction,
        seed=known.pop("seed", 0),
        seconds_per_epoch=known.pop("seconds_per_epoch", None),
        epochs=known.pop("epochs", None),
    )


def _test_samples(run: FinishedRun, config: EvalConfig) -> tuple[Tensor, float | None]:
    if config.data is not None:
        return _from_file(config.data, config.num_test)
    chosen = {field.name: run.config[field.name] for field in fields(DataConfig)}
    chosen["data"] = None if chosen["data"] is None else Path(chosen["data"])
    split = Split(DataConfig(**chosen))
    return split.load(split.test)[-(config.num_test or 0) :], split.test.nu


COMPARED = (*MODEL_OPTIONS["mno"], "batch_norm", "recipe", "noise", "transform_lr", "transform_decay")
COMPARED_DATA = (
    "num_train",
    "resolution",
    "minutes",
    "epochs",
    "lr",
    "weight_decay",
    "schedule",
    "batch_size",
)


def _variant(run: FinishedRun, runs: list[FinishedRun]) -> str:
    same = [_asked(other) for other in runs if other.config["model"] == run.config["model"]]
    mine = _asked(run)
    varying = [key for key in COMPARED + COMPARED_DATA if len({str(config[key]) for config in same}) > 1]
    defaults = {field.name: field.default for field in fields(TrainConfig)}
    chosen = {key: mine[key] for key in varying if mine[key] not in (None, defaults[key])}
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in chosen.items())


def _asked(run: FinishedRun) -> dict[str, Any]:
    """A run's options; the number of epochs is not one where it follows from the minutes."""
    return run.config if run.config["minutes"] is None else run.config | {"epochs": None}


def _from_file(path: Path, count: int | None) -> tuple[Tensor, float | None]:
    trajectories = open_trajectories(path)
    chosen = trajectories if count is None else trajectories.split(0, count)[1]
    return chosen.load(), trajectories.nu


def _pace(run: FinishedRun) -> dict[str, Any]:
    rows = run.metrics()
    return {"epochs": int(rows[-1]["epoch"]), "seconds_per_epoch": rows[-1]["seconds"] / rows[-1]["epoch"]}
