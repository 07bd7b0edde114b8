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
    return [
        _evaluation(
            run.weights,
            *_test_samples(run, config),
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
    test, nu = _from_file(config.data, config.num_test)
    return [_evaluation(path, test, nu, config, name=str(path)) for path in config.weights]


def _evaluation(
    path: Path, trajectories: Tensor, nu: float | None, config: EvalConfig, name: str, **known: Any
) -> Evaluation:
    loaded = weights.load(path)
    forecaster = from_weights(loaded, str(path))
    parameters = sum(parameter.numel() for parameter in forecaster.parameters())
    say(f"{name}: {len(trajectories)} forecasts")
    truth, prediction = evaluate(forecaster, trajectories, config.batch_size)
    return Evaluation(
        name=name,
        model=loaded.header["model"],
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


def _from_file(path: Path, count: int | None) -> tuple[Tensor, float | None]:
    trajectories = open_trajectories(path)
    chosen = trajectories if count is None else trajectories.split(0, count)[1]
    return chosen.load(), trajectories.nu


def _pace(run: FinishedRun) -> dict[str, Any]:
    rows = run.metrics()
    return {"epochs": int(rows[-1]["epoch"]), "seconds_per_epoch": rows[-1]["seconds"] / rows[-1]["epoch"]}
