"""From finished runs to the scores of every test sample, kept once computed."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from lab.demo.config import DataOptions, TrainConfig
from lab.demo.metrics import relative_error
from lab.demo.predictor import load
from lab.demo.sources import samples
from lab.errors import UserError
from lab.files import content_hash, kept
from lab.runs import FinishedRun, Row, rows


@dataclass(frozen=True)
class Result:
    """One row of the table: the errors of every seed's run on every test sample."""

    row: Row
    parameters: int
    errors: tuple[list[float], ...]
    """One list of test samples per run of the row."""


def score_runs(runs: Sequence[FinishedRun], folder: Path) -> list[Result]:
    """The test errors of all runs, by row; scores are kept in `folder`."""
    results = []
    for row in rows(runs, TrainConfig, apart=("size", "num_train")):
        errors = tuple(_errors(run, folder) for run in row.runs)
        results.append(Result(row, load(row.runs[0].weights).num_parameters, errors))
    return results


def _errors(run: FinishedRun, folder: Path) -> list[float]:
    def compute() -> list[float]:
        options = DataOptions(**{entry.name: run.config[entry.name] for entry in fields(DataOptions)})
        predictor = load(run.weights)
        if predictor.size != options.size:
            raise UserError(
                f"{run.folder / 'config.yaml'} has the size {options.size}, the weights beside it are of size "
                f"{predictor.size}; restore it, or move the run elsewhere."
            )
        x, y = samples(options, run.seed).test.tensors
        return relative_error(predictor.predict(x), y).tolist()

    return kept(folder, [run.name, content_hash(run.weights)], compute)
