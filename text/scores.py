"""From finished runs to the scores of every test sequence, kept once computed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

from lab.errors import UserError
from lab.files import content_hash, kept
from lab.runs import FinishedRun, Row, rows
from text.config import DataOptions, TrainConfig
from text.metrics import bits_per_byte
from text.models.parts.cost import Cost, cost
from text.predictor import load
from text.settings import SETTINGS, Setting
from text.sources import Corpus, corpus

COLUMNS = ("setting", "size", "minutes")
"""Options that tables show in columns of their own."""
CURVE = ("bits_per_byte", "train_seconds")
"""Columns of metrics.csv that curves and times are read from."""


@dataclass(frozen=True)
class Result:
    """One row of the table: the bits per byte of every seed's run on every test sequence."""

    row: Row
    cost: Cost
    bits: tuple[list[float], ...]
    """One list of test sequences per run of the row."""
    bytes_per_token: float

    @property
    def setting(self) -> Setting:
        """How it was trained."""
        return SETTINGS[self.row.config["setting"]]

    @property
    def steps(self) -> float:
        """Optimiser steps, the mean of the runs: a budget of minutes gives each its own."""
        return fmean(run.manifest["steps"]["total"] for run in self.row.runs)

    @property
    def seconds(self) -> list[float]:
        """Seconds of training of each run."""
        return [run.metrics(*CURVE)[-1]["train_seconds"] for run in self.row.runs]

    @property
    def tokens_per_second(self) -> float:
        """Tokens that training reads per second, the mean of the runs."""
        tokens = self.steps * self.row.config["batch_size"] * self.row.config["context"]
        seconds = fmean(self.seconds)
        return tokens / seconds if seconds else math.nan  # a run too short for the clock

    @property
    def is_budgeted(self) -> bool:
        """Whether time, not steps, decided its length."""
        return self.row.config.get("minutes") is not None


def score_runs(runs: Sequence[FinishedRun], folder: Path) -> list[Result]:
    """The test scores of all runs, by row; scores are kept in `folder`."""
    texts: dict[str, Corpus] = {}
    results = []
    for row in rows(runs, TrainConfig, apart=COLUMNS):
        options = _data_options(row)
        key = str((options.data, options.vocabulary, options.vocabulary_size))
        if key not in texts:
            texts[key] = corpus(options)
        text = texts[key]
        bits = tuple(_bits(run, text, options, folder) for run in row.runs)
        results.append(Result(row, _cost(row, text), bits, text.bytes_per_token["test"]))
    return results


def _data_options(row: Row) -> DataOptions:
    stored: dict[str, Any] = {entry.name: row.config[entry.name] for entry in fields(DataOptions)}
    stored["data"] = None if stored["data"] is None else Path(stored["data"])
    return DataOptions(**stored)


def _bits(run: FinishedRun, text: Corpus, options: DataOptions, folder: Path) -> list[float]:
    trained_on = run.manifest["data"]["fingerprint"]
    if trained_on != text.description["fingerprint"]:
        raise UserError(
            f"{run.name} was trained on other text than is there now ({text.description['origin']}); bring that text "
            "back, or move the run elsewhere."
        )

    def compute() -> list[float]:
        windows = text.held_out("test", options.context, options.num_test)
        surprise = load(run.weights).surprise(windows)
        return bits_per_byte(surprise, text.bytes_per_token["test"]).tolist()

    return kept(folder, [run.name, content_hash(run.weights), options.num_test], compute)


def _cost(row: Row, text: Corpus) -> Cost:
    """The cost of the model as its training begins."""
    own = {option.name: row.config[option.name] for option in TrainConfig.registry[row.model].options}
    way = SETTINGS[row.config["setting"]]
    if way.adapter:
        own["adapter"] = {"blocks": own["blocks"], "rank": row.config["adapter_rank"]}
    if not way.monarch:
        own["blocks"] = None
    return cost(row.model, text.vocabulary.size, row.config["context"], **own)


def baseline(result: Result, results: Sequence[Result]) -> Result | None:
    """The row that a setting is compared with: equal in all else, and with its length decided by steps.

    Its --blocks do not count: a dense model has none.
    """
    apart = TrainConfig.placement | {"seed", "setting", "minutes", "switch_at", "adapter_rank", "blocks"}

    def rest(each: Result) -> dict[str, object]:
        return {key: value for key, value in each.row.config.items() if key not in apart}

    for each in results:
        same = each.row.config["setting"] == result.setting.against and not each.is_budgeted
        if same and rest(each) == rest(result):
            return each
    return None


def time_to_reach(result: Result, other: Result) -> float | None:
    """Training time until the validation score of `other`'s end is reached, over the time that `other` took.

    The mean over the seeds that both have; None if one of them never gets there. Between two validations the score
    is taken to fall along a straight line.
    """
    runs = {run.seed: run.metrics(*CURVE) for run in other.row.runs}
    shares = []
    for run in result.row.runs:
        if run.seed not in runs:
            continue
        seconds = _crossing(run.metrics(*CURVE), runs[run.seed][-1]["bits_per_byte"])
        if seconds is None:
            return None
        shares.append(seconds / (runs[run.seed][-1]["train_seconds"] or math.nan))
    return fmean(shares) if shares else None


def _crossing(metrics: Sequence[dict[str, float]], goal: float) -> float | None:
    before = None
    for row in metrics:
        if row["bits_per_byte"] <= goal:
            if before is None:
                return row["train_seconds"]
            part = (before["bits_per_byte"] - goal) / (before["bits_per_byte"] - row["bits_per_byte"])
            return before["train_seconds"] + part * (row["train_seconds"] - before["train_seconds"])
        before = row
    return None
