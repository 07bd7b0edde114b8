"""T2 of every result against full sampling: a table by tissue, and a picture in colour."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from data.masks.spec import Kind
from data.scans.scan import Scan
from lab import plot
from lab.console import say
from lab.errors import UserError
from lab.files import content_hash, kept
from lab.progress import Progress
from lab.table import Column, Score, Table
from mri.config import T2Options
from mri.models import MODELS
from mri.predictor import target
from mri.sampling import evaluation_masks
from mri.scores import Result
from mri.t2 import Map, errors_by_tissue, t2_of

VERSION = 1
"""Of the definitions; one higher, and everything is computed again."""
TOP_MS = 80.0
"""The largest T2 that the colours tell apart."""


def t2_results(
    results: Sequence[Result], scans: Sequence[Scan], kind: Kind, options: T2Options, folder: Path, data: str
) -> tuple[Table, list[Path]]:
    """The table of errors by tissue, means over scans, and the picture of one scan; runs of the last seed."""
    with_two = [scan for scan in scans if scan.num_echoes == 2]
    if not with_two:
        raise UserError(
            "--t2 needs scans with the two echoes of qDESS, and none of these has them; leave it out."
        )
    if len(with_two) < len(scans):
        say(f"T2 of {len(with_two)} of {len(scans)} scans, those with two echoes")
    columns = [Column("acc", "acc."), Column("n", "N", extra=True), Column("method"), Column("tissue")]
    columns += [Column("t2", "T2 (ms)", digits=1), Column("bias", "bias (ms)", digits=2)]
    columns += [
        Column("error", "error (ms)", better="lower", digits=2),
        Column("found", digits=3, extra=True),
    ]
    caption = f"T2 against that of full sampling ({data}): mean ± standard error over scans, by tissue"
    table = Table(columns, caption=caption, group="tissue")
    by_result = []
    with Progress(len(results) * len(with_two), "T2", unit="volume") as progress:
        for result in results:
            known = [scan for scan in with_two if result.knows(scan)]
            by_result.append([_errors(result, scan, kind, options, folder / "scores") for scan in known])
            progress.advance(len(with_two))
    names = dict.fromkeys(row["tissue"] for found in by_result for rows in found for row in rows)
    for name in names:
        for result, found in zip(results, by_result, strict=True):
            rows = [row for each in found for row in each if row["tissue"] == name]
            if rows:
                scores = {
                    key: Score.of([row[key] for row in rows]) for key in ("t2", "bias", "error", "found")
                }
                setting = {
                    "acc": f"{result.acc:g}",
                    "n": str(result.num_train or "none"),
                    "method": result.label,
                }
                table.rows.append({**setting, "tissue": name, **scores})
    return table, [_picture(results, with_two[0], kind, options, folder, data)]


def _errors(result: Result, scan: Scan, kind: Kind, options: T2Options, folder: Path) -> list[dict[str, Any]]:
    run = result.run_for(scan)
    weights = content_hash(run.weights) if run else result.model
    key = [VERSION, "t2", weights, scan.file_key, result.acc, kind, asdict(_only_t2(options))]

    def compute() -> list[dict[str, Any]]:
        found = reconstructed_t2(result, scan, kind, options)
        reference = t2_of([target(scan, echo) for echo in range(2)], scan, options)
        return errors_by_tissue(found, reference, scan.segmentation())

    return kept(folder, key, compute)


def _only_t2(options: T2Options) -> T2Options:
    return T2Options(options.t2, options.t1, options.tr, options.te, options.flip)


def reconstructed_t2(
    result: Result, scan: Scan, kind: Kind, options: T2Options, slices: list[int] | None = None
) -> Map:
    """T2 as the last run of a result gives it, of all slices or some."""
    mask = evaluation_masks([scan], result.acc, kind)[scan.scan_id]
    return t2_of(list(result.predictor(scan).reconstruct(scan, mask, slices)), scan, options)


def _picture(
    results: Sequence[Result], scan: Scan, kind: Kind, options: T2Options, folder: Path, data: str
) -> Path:
    """One slice: T2 of full sampling and of every result at the lowest acceleration."""
    acc = min(result.acc for result in results)
    echoes = [target(scan, echo) for echo in range(2)]
    truth = t2_of(echoes, scan, options)
    index = int(np.isfinite(truth).sum((1, 2)).argmax())
    panels = {"full sampling": truth[index]}
    for result in results:
        if result.acc == acc and result.knows(scan):
            name = result.label.replace(result.model, MODELS[result.model].shown, 1)
            panels[f"{name}{f', N = {result.num_train}' if result.num_train else ''}"] = reconstructed_t2(
                result, scan, kind, options
            )[index]
    title = f"{scan.scan_id}, acceleration {acc:g} ({data})"
    aspect = scan.voxel_spacing[1] / scan.voxel_spacing[2]
    return draw_t2(folder / "t2.png", panels, np.abs(echoes[0][index]), title, aspect)


def draw_t2(
    path: Path, maps: dict[str, Map], magnitude: np.ndarray, title: str = "", aspect: float = 1.0
) -> Path:
    """Maps (ky, kz) of T2 in colour over the first echo in grey, on one scale."""
    with plot.style():
        height = 2.2 * aspect * magnitude.shape[0] / magnitude.shape[1]
        figure, axes = plot.figure(1, len(maps), width=2.2, height=min(max(height, 1.4), 3.6))
        figure.suptitle(title)
        top = float(np.quantile(magnitude, 0.999))
        for panel, (name, values) in zip(axes[0], maps.items(), strict=True):
            plot.show_image(panel, magnitude, cmap=plot.IMAGE_MAP, vmin=0, vmax=top, aspect=aspect)
            shown = plot.show_image(
                panel,
                np.ma.masked_invalid(values),
                title=name,
                cmap="turbo",
                vmin=0,
                vmax=TOP_MS,
                aspect=aspect,
            )
        figure.colorbar(shown, ax=axes[0], label="T2 (ms)")
        return plot.save(figure, path)
