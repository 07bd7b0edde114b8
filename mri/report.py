"""From scores to a page for the browser: the tables, and slices of a few scans to look through."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from data.masks.spec import Kind
from data.scans.scan import Scan
from lab import report
from lab.manifest import command_line
from lab.report import Page, Stack, Viewer
from lab.runs import FinishedRun
from lab.table import Table
from mri.config import T2Options
from mri.metrics import METRICS
from mri.models import MODELS
from mri.predictor import target
from mri.sampling import evaluation_masks
from mri.scores import Result, scored_at
from mri.t2 import t2_of
from mri.t2_results import reconstructed_t2

SCANS, SLICES = 3, 8
"""Test scans to look through, and slices of each, spread evenly over its middle half."""


def write(
    results: Sequence[Result],
    tables: Sequence[Table],
    scans: Sequence[Scan],
    kind: Kind,
    data: str,
    path: Path,
    t2: T2Options | None = None,
) -> Path:
    """The page; `data` says what the scans are. With the timing of their two echoes, maps of T2 are on it too."""
    maps = [] if t2 is None else [_t2_viewer(results, scans, kind, t2)]
    page = Page(
        title="MRI reconstruction",
        compared=", ".join(dict.fromkeys(_label(result) for result in results)),
        data=f"{data}; {kind} sampling.",
        tables=tables,
        viewers=[_viewer(results, scans[:SCANS], kind), *maps],
        runs=_runs(results),
        command=command_line(),
    )
    return report.write(page, path)


def _runs(results: Sequence[Result]) -> dict[str, Sequence[FinishedRun]]:
    """The runs of each row, each once; with what they were trained for where that differs."""
    several = len({tuple(scored_at(run)) for result in results for run in result.runs}) > 1
    found: dict[str, dict[Path, FinishedRun]] = {}
    for result in results:
        for run in result.runs:
            accs = ", ".join(f"{acc:g}" for acc in scored_at(run))
            label = f"{_label(result)}, acceleration {accs}" if several else _label(result)
            found.setdefault(label, {})[run.folder] = run
    return {label: list(runs.values()) for label, runs in found.items()}


def middle_slices(scan: Scan) -> list[int]:
    """The slices that are shown."""
    count = scan.num_slices
    wanted = np.linspace(count // 4, max(count - count // 4 - 1, count // 4), min(SLICES, count))
    return sorted({int(at) for at in wanted})


def _viewer(results: Sequence[Result], scans: Sequence[Scan], kind: Kind) -> Viewer:
    accs = sorted({result.acc for result in results})
    stacks = [stack for scan in scans for acc in accs for stack in _stacks(results, scan, acc, kind)]
    return Viewer("Reconstructions", "image", "slice", stacks, _slice_labels(scans), truth="full sampling")


def _slice_labels(scans: Sequence[Scan]) -> list[str]:
    """Numbers of the slices that are shown, counted as --slices does; none where they differ between scans."""
    slices = middle_slices(scans[0])
    same = all(middle_slices(scan) == slices for scan in scans)
    return [str(at) for at in slices] if same else []


def _stacks(results: Sequence[Result], scan: Scan, acc: float, kind: Kind) -> Iterator[Stack]:
    """One scan at one acceleration: a stack for each echo."""
    slices, mask = middle_slices(scan), evaluation_masks([scan], acc, kind)[scan.scan_id]
    here = [result for result in results if result.acc == acc and result.knows(scan)]
    predictors = {_label(result): result.predictor(scan) for result in here}
    made = {name: np.abs(predictor.reconstruct(scan, mask, slices)) for name, predictor in predictors.items()}
    metric = next(iter(METRICS))
    for echo in range(scan.num_echoes):
        scores = {_label(result): result.values(metric, echo + 1)[scan.scan_id] for result in here}
        yield Stack(
            choice={"scan": scan.scan_id, "acceleration": f"{acc:g}", "echo": str(echo + 1)},
            truth=np.abs(target(scan, echo)[slices]),
            made={name: volumes[echo] for name, volumes in made.items()},
            notes={name: METRICS[metric].shown(score) for name, score in scores.items()},
            aspect=scan.voxel_spacing[1] / scan.voxel_spacing[2],
        )


def _t2_viewer(results: Sequence[Result], scans: Sequence[Scan], kind: Kind, t2: T2Options) -> Viewer:
    """Maps of T2 of the same slices, of scans with two echoes."""
    shown = [scan for scan in scans if scan.num_echoes == 2][:SCANS]
    stacks = []
    for scan in shown:
        slices = middle_slices(scan)
        truth = t2_of([target(scan, echo)[slices] for echo in range(2)], scan, t2)
        for acc in sorted({result.acc for result in results}):
            here = [result for result in results if result.acc == acc and result.knows(scan)]
            made = {_label(result): reconstructed_t2(result, scan, kind, t2, slices) for result in here}
            choice = {"scan": scan.scan_id, "acceleration": f"{acc:g}"}
            aspect = scan.voxel_spacing[1] / scan.voxel_spacing[2]
            stacks.append(Stack(choice, truth, made, aspect=aspect, unit="ms"))
    return Viewer("T2", "map", "slice", stacks, _slice_labels(shown), truth="full sampling")


def _label(result: Result) -> str:
    """What the page calls a row."""
    trained = f", N = {result.num_train}" if result.num_train else ""
    return result.label.replace(result.model, MODELS[result.model].shown, 1) + trained
