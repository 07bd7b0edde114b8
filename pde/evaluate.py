"""Forecasts of the test samples and their errors, from weights files or finished runs."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.navier_stokes.reader import Trajectories, open_trajectories
from lab import weights
from lab.console import say
from lab.errors import UserError
from lab.gather import FinishedRun
from pde.config import FRAMES_IN, DataConfig, EvalConfig
from pde.forecaster import Forecaster, from_weights
from pde.metrics import error_per_frame, relative_error
from pde.sources import Split


@dataclass
class Evaluation:
    """One trained model on the test samples."""

    name: str
    model: str
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
        """How figures call it."""
        return self.model if self.seed == 0 else f"{self.model}, seed {self.seed}"


def evaluate(forecaster: Forecaster, test: Trajectories, batch_size: int) -> tuple[Tensor, Tensor]:
    """Truth and forecast of all frames after the first ten, each (sample, x, y, frame)."""
    if test.frames <= FRAMES_IN:
        raise UserError(f"{test.source.path} has {test.frames} frames; a forecast starts from {FRAMES_IN}.")
    forecaster = forecaster.at_resolution(test.resolution)
    trajectories = test.load()
    with torch.inference_mode():
        forecasts = [forecaster.forecast(batch) for batch in trajectories.split(batch_size)]
    return trajectories[..., FRAMES_IN:], torch.cat(forecasts)


def evaluate_runs(runs: Iterable[FinishedRun], config: EvalConfig) -> list[Evaluation]:
    """Every finished run on its own test samples, or all on those of `config.data`."""
    return [
        _evaluation(
            run.weights,
            _test_samples(run, config),
            config,
            name=run.folder.name,
            seed=run.config["seed"],
            **_pace(run),
        )
        for run in runs
    ]


def evaluate_weights(config: EvalConfig) -> list[Evaluation]:
    """Every given weights file on the test samples of `config.data`."""
    assert config.data is not None
    test = _last(open_trajectories(config.data), config.num_test)
    return [_evaluation(path, test, config, name=str(path)) for path in config.weights]


def _evaluation(path: Path, test: Trajectories, config: EvalConfig, name: str, **known: Any) -> Evaluation:
    loaded = weights.load(path)
    forecaster = from_weights(loaded, str(path))
    parameters = sum(parameter.numel() for parameter in forecaster.parameters())
    say(f"{name}: {len(test)} forecasts")
    truth, prediction = evaluate(forecaster, test, config.batch_size)
    return Evaluation(
        name=name,
        model=loaded.header["model"],
        nu=test.nu or loaded.header["nu"],
        parameters=parameters,
        errors=relative_error(prediction, truth),
        per_frame=error_per_frame(prediction, truth),
        truth=truth,
        prediction=prediction,
        seed=known.pop("seed", 0),
        seconds_per_epoch=known.pop("seconds_per_epoch", None),
        epochs=known.pop("epochs", None),
    )


def _test_samples(run: FinishedRun, config: EvalConfig) -> Trajectories:
    if config.data is not None:
        return _last(open_trajectories(config.data), config.num_test)
    chosen = {field.name: run.config[field.name] for field in fields(DataConfig)}
    chosen["data"] = None if chosen["data"] is None else Path(chosen["data"])
    test = Split(DataConfig(**chosen)).test
    return _last(test, config.num_test)


def _last(trajectories: Trajectories, count: int | None) -> Trajectories:
    return trajectories if count is None else trajectories.split(0, count)[1]


def _pace(run: FinishedRun) -> dict[str, Any]:
    rows = run.metrics()
    return {"epochs": int(rows[-1]["epoch"]), "seconds_per_epoch": rows[-1]["seconds"] / rows[-1]["epoch"]}
