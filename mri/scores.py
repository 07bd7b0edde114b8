"""From finished runs to the scores of every scan, kept once computed."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import Tensor

from data.masks.spec import LOWEST_ACCELERATION, Kind
from data.scans.scan import Scan
from lab.console import say
from lab.files import content_hash, kept
from lab.progress import Progress
from lab.runs import FinishedRun, Row, rows
from mri.config import TrainConfig
from mri.metrics import METRICS, quality
from mri.models import BASELINE, MODELS, build
from mri.predictor import Predictor, load, target
from mri.sampling import evaluation_masks

VERSION = 1
"""Of the definitions of the scores; one higher, and everything is scored again."""

Scores = list[dict[str, Any]]
"""One entry per scan and echo: scan, echo (from 1) and the value of each metric."""


@dataclass(frozen=True)
class Result:
    """One row of a table: a method at one acceleration, trained on some scans, with its scores."""

    label: str
    model: str
    acc: float
    num_train: int
    by_seed: Mapping[int, Scores]
    runs: tuple[FinishedRun, ...] = ()

    @property
    def learned(self) -> bool:
        """Whether gradients trained it."""
        return MODELS[self.model].learned

    @property
    def variant(self) -> bool:
        """Whether its options differ from those that most of the method's runs have."""
        return self.label != self.model

    @cached_property
    def scores(self) -> Scores:
        """The mean over seeds."""
        return [
            same[0] | {name: fmean(one[name] for one in same) for name in METRICS}
            for same in zip(*self.by_seed.values(), strict=True)
        ]

    @property
    def echoes(self) -> list[int]:
        """The echoes that were scored, from 1."""
        return sorted({row["echo"] for row in self.scores})

    def values(self, metric: str, echo: int) -> dict[str, float]:
        """A metric of one echo, by scan."""
        return {row["scan"]: row[metric] for row in self.scores if row["echo"] == echo}

    def with_seeds_of(self, other: "Result") -> "Result":
        """This row with the seeds of another that stands for the same; of a seed that both have, the other's counts."""
        for seed in self.by_seed.keys() & other.by_seed.keys():
            mine, theirs = (next(run for run in each.runs if run.seed == seed) for each in (self, other))
            say(f"{mine.name} and {theirs.name} stand in one row with the same seed; the second counts")
        kept = tuple(run for run in self.runs if run.seed not in other.by_seed)
        return replace(self, by_seed={**self.by_seed, **other.by_seed}, runs=(*kept, *other.runs))

    def with_scans_of(self, other: "Result") -> "Result":
        """This row with the scores of another, of other scans, for the seeds that both have."""
        by_seed = {
            seed: [*self.by_seed[seed], *other.by_seed[seed]]
            for seed in self.by_seed
            if seed in other.by_seed
        }
        return replace(self, by_seed=by_seed, runs=(*self.runs, *other.runs))

    def knows(self, scan: Scan) -> bool:
        """Whether it was scored on a scan: with --supervision zero-shot only if it was trained to reconstruct it."""
        return any(row["scan"] == scan.scan_id for row in self.scores)

    def run_for(self, scan: Scan) -> FinishedRun | None:
        """The run that reconstructs a scan: the last seed, with --supervision zero-shot that of the scan's own."""
        fitting = [run for run in self.runs if run.config.get("scan") in (None, scan.scan_id)]
        return fitting[-1] if fitting else None

    def predictor(self, scan: Scan) -> Predictor:
        """The method in use on a scan."""
        run = self.run_for(scan)
        return load(run.weights) if run else Predictor(build(self.model, scan.matrix_shape[1:]))


def score_runs(
    runs: Sequence[FinishedRun],
    scans: Sequence[Scan],
    kind: Kind,
    folder: Path,
    accs: Sequence[float] | None = None,
) -> list[Result]:
    """The scores of all runs, by row, and of the baseline at every acceleration; they are kept in `folder`.

    A run is scored at the accelerations it was trained on, or at `accs`, where rows say what they were trained on if
    that differs; one of --supervision zero-shot on its own scan alone, and such runs of several scans make one row.
    """
    runs = [as_trained(run) for run in runs]
    apart = ("num_train", "scan") if accs else ("acc", "num_train", "scan")
    trained = rows((run for run in runs if run.model != BASELINE), TrainConfig, apart=apart)
    accelerations = sorted({acc for run in runs for acc in accs or scored_at(run)})
    masks = {acc: evaluation_masks(scans, acc, kind) for acc in accelerations}
    wanted = [(row, accs or scored_at(row.runs[0]), _concerned(row, scans)) for row in trained]
    slices = sum(len(row.runs) * len(at) * _slices(concerned) for row, at, concerned in wanted)
    results: dict[tuple[str, float, int], Result] = {}
    with Progress(slices + len(accelerations) * _slices(scans), "scoring", unit="slice") as progress:
        for acc in accelerations:
            baseline = Predictor(build(BASELINE, scans[0].matrix_shape[1:]))
            scores = _scores(baseline, "untrained", scans, masks[acc], folder, progress)
            results[BASELINE, acc, 0] = Result(BASELINE, BASELINE, acc, 0, {0: scores})
        for row, at, concerned in (each for each in wanted if each[2]):
            num_train = 0 if row.config.get("scan") else len(row.runs[0].manifest["data"]["train"])
            loaded = {run.seed: (load(run.weights), content_hash(run.weights)) for run in row.runs}
            for acc in at:
                by_seed = {
                    seed: _scores(predictor, content, concerned, masks[acc], folder, progress)
                    for seed, (predictor, content) in loaded.items()
                }
                made = Result(row.label, row.model, acc, num_train, by_seed, row.runs)
                key = row.label, acc, num_train
                if key in results:
                    met = results[key]
                    made = met.with_scans_of(made) if row.config.get("scan") else met.with_seeds_of(made)
                results[key] = made
    order = list(MODELS)
    return sorted(
        results.values(), key=lambda one: (one.acc, order.index(one.model), one.label, one.num_train)
    )


def _concerned(row: Row, scans: Sequence[Scan]) -> list[Scan]:
    """The scans that a row is scored on: all, or the one that it was trained to reconstruct."""
    own = row.config.get("scan")
    return [scan for scan in scans if own in (None, scan.scan_id)]


def _slices(scans: Sequence[Scan]) -> int:
    return sum(scan.num_slices * scan.num_echoes for scan in scans)


def as_trained(run: FinishedRun) -> FinishedRun:
    """The run with the acceleration of its scans for --acc, which had no say where they were acquired undersampled."""
    data = run.manifest["data"]
    own = data.get("undersampled", {})
    if not own or len(own) < len(data["train"]):
        return run
    return replace(run, config={**run.config, "acc": max(LOWEST_ACCELERATION, *own.values())})


def scored_at(run: FinishedRun) -> list[float]:
    """The accelerations that a run was trained for, and is scored at."""
    return sorted({float(run.config["acc"]), *map(float, run.config.get("mixed_acc") or ())})


def _scores(
    predictor: Predictor,
    weights: str,
    scans: Sequence[Scan],
    masks: Mapping[str, Tensor],
    folder: Path,
    progress: Progress,
) -> Scores:
    """Scores of every scan and echo; what was scored before with these weights and this mask is read."""

    def compute(scan: Scan) -> Scores:
        volumes = predictor.reconstruct(scan, masks[scan.scan_id], advance=progress.advance)
        return [
            {"scan": scan.scan_id, "echo": echo + 1, **quality(image, target(scan, echo))}
            for echo, image in enumerate(volumes)
        ]

    scores: Scores = []
    for scan in scans:
        sampled = hashlib.sha256(masks[scan.scan_id].numpy().tobytes()).hexdigest()
        key, done = [VERSION, list(METRICS), weights, scan.file_key, sampled], progress.done
        scores += kept(folder, key, lambda scan=scan: compute(scan))  # type: ignore[misc]
        if progress.done == done:
            progress.skip(scan.num_slices * scan.num_echoes)
    return scores
