"""Finished runs to tables, figures and volumes."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from lab.gather import FinishedRun, finished_runs

from data.masks.pool import density
from data.masks.spec import Kind
from data.scans.scan import Scan
from lab.console import say
from lab.errors import UserError
from lab.files import write_text
from lab.paths import runs_dir
from lab.progress import Progress
from lab.table import Table
from mri import report, volume
from mri.config import EvalConfig
from mri.figures import draw_learned, draw_reconstructions
from mri.metrics import Complex
from mri.models.method import Method
from mri.models.msense import MSense
from mri.models.registry import load
from mri.models.sense import Sense
from mri.nifti import write_nifti
from mri.sampling import evaluation_masks, training_masks
from mri.scoring import Result, score_runs
from mri.sources import Source

SHOWN = ("sense", "msense", "unet")


def evaluate(config: EvalConfig) -> list[Table]:
    """Score the finished runs, data set by data set; print and write everything."""
    torch.set_num_threads(config.threads or torch.get_num_threads())
    folder = Path(config.runs) if config.runs else runs_dir() / "mri"
    runs = [
        run for run in finished_runs("mri", folder) if config.only is None or config.only in run.folder.name
    ]
    if not runs:
        raise UserError(f"no finished run in {folder} has {config.only!r} in its name.")
    out = Path(config.out) if config.out else folder / "results"
    by_root: dict[str, list[FinishedRun]] = {}
    for run in runs:
        by_root.setdefault(config.data or run.manifest["data"]["root"], []).append(run)
    tables = []
    for root, members in by_root.items():
        if not Path(root).is_dir():
            raise UserError(
                f"the data of {members[0].folder.name} were in {root}, which is gone; name it with --data."
            )
        place = out / Path(root).name if len(by_root) > 1 else out
        tables += _evaluate_one(Source(Path(root), skip_bad=True), members, place, config)
    return tables


def _evaluate_one(source: Source, runs: list[FinishedRun], out: Path, config: EvalConfig) -> list[Table]:
    scans = source.scans(config.split)
    data = f"{source.origin(scans[0])}, {len(scans)} {config.split} scan{'s' if len(scans) > 1 else ''}"
    say(f"data: {data}, in {source.root}")
    results = score_runs(runs, scans, out / "scores")
    named = {
        "acceleration": report.acceleration_table(results, data),
        "acceleration_complex": report.acceleration_table(results, data, ["psnr_complex"]),
        "few_shot": report.few_shot_table(results, data),
        "against_sense": report.paired_table(results, "sense", data),
        "against_dc_sense": report.paired_table(results, "dc-sense", data),
        "seeds": report.seeds_table(results, data),
    }
    written, tables = [], []
    for stem, table in named.items():
        if table is not None:
            table.print()
            written += table.save(out, stem)
            tables.append(table)
    write_text(out / "per_scan.csv", report.per_scan_csv(results))
    written.append(out / "per_scan.csv")
    if config.figures:
        written += _figures(results, scans, out, data)
    if config.export == "nifti":
        written += _export(results, scans, out / "volumes")
    say("wrote " + ", ".join(str(path) for path in written))
    return tables


def _figures(results: Sequence[Result], scans: Sequence[Scan], out: Path, data: str) -> list[Path]:
    """The lowest acceleration, the fewest training scans, the first scan: as the paper shows it.

    Of each method the run with the usual options, or else one with others.
    """
    acc = min(result.acc for result in results)
    chosen: dict[str, Result] = {}
    shown = (result for result in results if result.acc == acc and result.model in SHOWN)
    for result in sorted(shown, key=lambda r: (SHOWN.index(r.model), r.label != r.model, r.n)):
        chosen.setdefault(result.model, result)
    scan = scans[0]
    mask = evaluation_masks([scan], acc, _sampling(results))[scan.scan_id]
    aspect = scan.voxel_spacing[1] / scan.voxel_spacing[2]
    paths = []
    for echo in range(scan.num_echoes):
        images = {
            _title(result): volume.reconstruct(_method(result, scan), scan, echo, mask)
            for result in chosen.values()
        }
        title = f"{scan.scan_id}, echo {echo + 1}, acceleration {acc:g} ({data.rsplit(',', 1)[0]})"
        path = out / f"reconstruction_echo{echo + 1}.png"
        paths.append(draw_reconstructions(path, volume.target(scan, echo), images, title, aspect))
    # The learned weights are best seen where the most was learned from.
    for result in sorted((r for r in results if r.acc == acc and r.label == "msense"), key=lambda r: -r.n)[
        :1
    ]:
        run = result.runs[-1]
        method = cast(MSense, _method(result, scan))
        sampled = density(training_masks(scans, acc, run.config["mask"], run.config["masks"]))
        title = f"What mSENSE learned, acceleration {acc:g}, N = {result.n} ({data.rsplit(',', 1)[0]})"
        paths.append(draw_learned(out / "learned.png", method, sampled, title))
    return paths


def _export(results: Sequence[Result], scans: Sequence[Scan], folder: Path) -> list[Path]:
    """The target and every method's reconstruction of every scan, magnitudes, one frame an echo."""
    paths = []
    with Progress(len(scans) * (len(results) + 1), "exporting", unit="volume") as progress:
        for scan in scans:
            whole = [np.abs(volume.target(scan, echo)) for echo in range(scan.num_echoes)]
            paths.append(write_nifti(folder / f"{scan.scan_id}-target.nii.gz", np.stack(whole, -1), scan))
            progress.advance()
            for result in results:
                mask = evaluation_masks([scan], result.acc, _sampling(results))[scan.scan_id]
                method = _method(result, scan)
                images: list[Complex] = [
                    volume.reconstruct(method, scan, echo, mask) for echo in range(scan.num_echoes)
                ]
                trained = f"-n{result.n}" if result.n else ""
                name = f"{scan.scan_id}-{result.label.replace(' ', '-')}-acc{result.acc:g}{trained}.nii.gz"
                paths.append(write_nifti(folder / name, np.abs(np.stack(images, -1)), scan))
                progress.advance()
    return paths


def _method(result: Result, scan: Scan) -> Method:
    return load(result.runs[-1].weights)[0] if result.runs else Sense(scan.matrix_shape[1:])


def _sampling(results: Sequence[Result]) -> Kind:
    return next(result.runs[0].config["mask"] for result in results if result.runs)


def _title(result: Result) -> str:
    names = {"sense": "SENSE", "msense": "mSENSE", "unet": "U-Net"}
    return names[result.model] + (f" (N = {result.n})" if result.n else "")
