"""From scores to a page for the browser: the tables, and slices of a scan to look through."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data.masks.spec import Kind
from data.scans.scan import Scan
from lab import report
from lab.manifest import command_line
from lab.report import Page, Stack, Viewer
from lab.table import Table
from mri.metrics import METRICS
from mri.models import MODELS
from mri.predictor import target
from mri.sampling import evaluation_masks
from mri.scores import Result

SLICES = 8
"""Slices of a scan to look through, spread evenly over its middle half."""


def write(
    results: Sequence[Result], tables: Sequence[Table], scan: Scan, kind: Kind, data: str, path: Path
) -> Path:
    """The page, with one scan to look at; `data` says what the scans are."""
    page = Page(
        title="MRI reconstruction",
        compared=f"Compared: {', '.join(dict.fromkeys(_label(result) for result in results))}.",
        data=f"Data: {data}; {kind} sampling.",
        tables=tables,
        viewers=[_viewer(results, scan, kind)],
        runs={_label(result): result.runs for result in results if result.runs},
        command=command_line(),
    )
    return report.write(page, path)


def _viewer(results: Sequence[Result], scan: Scan, kind: Kind) -> Viewer:
    count = scan.num_slices
    middle = np.linspace(count // 4, max(count - count // 4 - 1, count // 4), min(SLICES, count))
    slices = sorted({int(at) for at in middle})
    stacks = []
    for acc in sorted({result.acc for result in results}):
        mask = evaluation_masks([scan], acc, kind)[scan.scan_id]
        here = [result for result in results if result.acc == acc]
        predictors = {_label(result): result.predictor(scan.matrix_shape[1:]) for result in here}
        for echo in range(scan.num_echoes):
            metric = next(iter(METRICS))
            scores = {_label(result): result.values(metric, echo + 1)[scan.scan_id] for result in here}
            stacks.append(
                Stack(
                    choice={"scan": scan.scan_id, "echo": str(echo + 1), "acceleration": f"{acc:g}"},
                    truth=np.abs(target(scan, echo)[slices]),
                    made={
                        name: np.abs(predictor.reconstruct(scan, echo, mask, slices))
                        for name, predictor in predictors.items()
                    },
                    notes={name: METRICS[metric].shown(score) for name, score in scores.items()},
                    aspect=scan.voxel_spacing[1] / scan.voxel_spacing[2],
                )
            )
    return Viewer("Reconstructions", "image", "slice", stacks, [str(at + 1) for at in slices])


def _label(result: Result) -> str:
    """What the page calls a row."""
    trained = f", N = {result.num_train}" if result.num_train else ""
    return result.label.replace(result.model, MODELS[result.model].shown, 1) + trained
