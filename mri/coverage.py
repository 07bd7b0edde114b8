"""`python -m mri.eval --uncertainty`: calibrate the uncertainty of finished runs, and see how often it holds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from data.masks.spec import Kind
from data.scans.scan import Scan
from lab.errors import UserError
from lab.progress import Progress
from lab.runs import FinishedRun
from lab.table import Cell, Column, Score, Table
from mri.figures import draw_uncertainty
from mri.models import MODELS
from mri.predictor import Predictor
from mri.sampling import evaluation_masks
from mri.scores import Result
from mri.sources import Source
from mri.uncertainty import LEVEL, anatomy, keep, kept_factor, ratios, spread

SLICES = 4
"""Slices of each scan that calibration and coverage look at, evenly spaced over its middle half."""


def coverage_table(
    results: Sequence[Result], scans: Sequence[Scan], kind: Kind, data: str, root: Path
) -> Table:
    """For every method that gradients trained: the factor from the validation scans of its own data, kept beside its
    weights, and in how many of the voxels of `scans`, which are below `root`, the error is below factor x sigma."""
    chosen = [result for result in results if result.learned and not result.runs[-1].config.get("scan")]
    if not chosen:
        raise UserError("--uncertainty is for methods that gradients train; none of these runs has one.")
    echoes = range(1, max(scan.num_echoes for scan in scans) + 1)
    columns = [Column("acc", "acc."), Column("method"), Column("n", "N"), Column("factor", digits=2)]
    columns += [Column(f"coverage_{echo}", f"coverage E{echo}", digits=3) for echo in echoes]
    columns += [Column(f"width_{echo}", f"half-width E{echo}", digits=4, extra=True) for echo in echoes]
    caption = (
        f"Uncertainty ({data}): share of the voxels of the anatomy whose error is below the half-width, which is meant "
        f"to be {LEVEL:g}; mean ± standard error over scans. Half-width: its median, relative to the brightest voxel. "
        "A validation scan is judged by the factor that the others give"
    )
    table = Table(columns, caption=caption)
    with Progress(len(chosen), "calibrating", unit="row") as progress:
        for result in chosen:
            run = result.runs[-1]
            validation = _validation_scans(run, root)
            predictor = result.predictor(scans[0])
            found = {
                each.path: _measured(predictor, each, result.acc, kind)
                for each in {scan.path: scan for scan in (*validation, *scans)}.values()
            }
            calibration = {scan.path: found[scan.path][0] for scan in validation}
            factor = factor_from(calibration)
            keep(run.folder, result.acc, factor, [scan.scan_id for scan in validation])
            row: dict[str, Cell] = {
                "acc": f"{result.acc:g}",
                "method": result.label,
                "n": str(result.num_train),
            }
            measured = [(found[scan.path], factor_from(calibration, without=scan.path)) for scan in scans]
            for echo in echoes:
                having = [(one, own) for one, own in measured if len(one[0]) >= echo]
                row[f"coverage_{echo}"] = Score.of(
                    float((one[0][echo - 1] < own).mean()) for one, own in having
                )
                row[f"width_{echo}"] = Score.of(own * one[1][echo - 1] for one, own in having)
            table.rows.append({**row, "factor": factor})
            progress.advance()
    return table


def _validation_scans(run: FinishedRun, root: Path) -> list[Scan]:
    """The validation scans of a run's own data, which may have moved to `root` since."""
    own, plane = Path(run.manifest["data"]["root"]), run.config.get("plane")
    if own.is_dir():
        return Source(own, skip_bad=True, plane=plane).scans("val")
    found = Source(root, skip_bad=True, plane=plane).scans("val")
    if [scan.scan_id for scan in found] != run.manifest["data"]["validation"]:
        raise UserError(
            f"--uncertainty calibrates on the data of {run.name}, which were in {own} and are gone; {root} has other "
            "validation scans."
        )
    return found


def factor_from(calibration: Mapping[Path, list[np.ndarray]], without: Path | None = None) -> float:
    """The quantile of error / sigma, given by scan and echo; one scan may be left out, if there are others.

    >>> seen = {Path("a"): [np.full(9, 1.0)], Path("b"): [np.full(9, 3.0)]}
    >>> factor_from(seen), factor_from(seen, without=Path("b")), factor_from({Path("b"): seen[Path("b")]}, Path("b"))
    (3.0, 1.0, 3.0)
    """
    others = [found for path, found in calibration.items() if path != without] or calibration.values()
    return float(np.quantile(np.concatenate([each for one in others for each in one]), LEVEL))


def coverage_figure(results: Sequence[Result], scan: Scan, kind: Kind, folder: Path) -> Path:
    """One slice of a scan: reconstruction, its error and the half-width, by the first method that was calibrated."""
    result = next(one for one in results if one.learned and not one.runs[-1].config.get("scan"))
    predictor, index = result.predictor(scan), scan.num_slices // 2
    mask = evaluation_masks([scan], result.acc, kind)[scan.scan_id]
    image = predictor.reconstruct(scan, mask, [index])[0, 0]
    factor = kept_factor(result.runs[-1].folder, result.acc)[0]
    width = factor * spread(predictor, scan, mask, [index])[0, 0]
    truth = scan.read(index, 0)[2].numpy()
    title = f"{MODELS[result.model].shown}, {scan.scan_id}, acceleration {result.acc:g} ({scan.origin})"
    aspect = scan.voxel_spacing[1] / scan.voxel_spacing[2]
    return draw_uncertainty(folder / "uncertainty.png", truth, image, width, title, aspect)


def _measured(
    predictor: Predictor, scan: Scan, acc: float, kind: Kind
) -> tuple[list[np.ndarray], list[float]]:
    """By echo: error / sigma in every voxel of the anatomy, and the median of sigma there over the brightest voxel."""
    mask = evaluation_masks([scan], acc, kind)[scan.scan_id]
    inner = np.linspace(scan.num_slices // 4, max(scan.num_slices - scan.num_slices // 4 - 1, 0), SLICES)
    slices = sorted({int(at) for at in inner})
    found, widths = [], []
    images, sigmas = predictor.reconstruct(scan, mask, slices), spread(predictor, scan, mask, slices)
    for echo, (image, sigma) in enumerate(zip(images, sigmas, strict=True)):
        truth = np.stack([scan.read(index, echo)[2].numpy() for index in slices])
        found.append(ratios(image, truth, sigma))
        widths.append(float(np.median(sigma[anatomy(image)]) / np.abs(truth).max()))
    return found, widths
