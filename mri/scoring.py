"""The scores of finished runs on every scan of a split, kept on disk once computed."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from lab.gather import FinishedRun
from torch import Tensor

from data.masks.spec import Kind
from data.scans.scan import Scan
from lab.errors import UserError
from lab.files import fingerprint, read_json, write_json
from lab.presets import read_preset
from lab.progress import Progress
from mri import volume
from mri.config import MODELS, method_label
from mri.metrics import quality
from mri.models.method import Method
from mri.models.registry import load
from mri.models.sense import Sense
from mri.sampling import evaluation_masks
from mri.sources import plane_of

METRICS_VERSION = 1
METRICS = ("psnr", "psnr_complex", "ssim")
Row = dict[str, Any]


@dataclass
class Result:
    """One method at one acceleration, trained on n scans, with its scores scan by scan and echo by echo."""

    label: str
    acc: float
    n: int
    parameters: int
    rows: list[Row]
    runs: list[FinishedRun] = field(default_factory=list)
    by_seed: dict[int, list[Row]] = field(default_factory=dict)
    """The rows of each seed; `rows` are their means."""

    @property
    def model(self) -> str:
        """The method without its options."""
        return self.label.split()[0]

    @property
    def learned(self) -> bool:
        """Whether gradients trained it."""
        return self.parameters > 0

    def values(self, metric: str, echo: int) -> dict[str, float]:
        """A metric of one echo, by scan."""
        return {row["scan"]: row[metric] for row in self.rows if row["echo"] == echo}


def score_runs(runs: Sequence[FinishedRun], scans: Sequence[Scan], folder: Path) -> list[Result]:
    """Every run, and plain SENSE at every acceleration; runs that differ in the seed alone are averaged."""
    groups: dict[tuple[float, str, int], dict[int, FinishedRun]] = {}
    samplings: dict[float, Kind] = {}
    for run in runs:  # by folder name, which begins with the date: of two equal runs the later one counts
        kind, acc = run.config["mask"], run.config["acc"]
        if samplings.setdefault(acc, kind) != kind:
            raise UserError(
                f"some runs at acceleration {acc:g} were sampled by --mask {kind}, others by {samplings[acc]}; "
                "they cannot share a table. Choose some with --only."
            )
        if run.config["model"] != "sense":
            groups.setdefault(_key(run), {})[run.config["seed"]] = run
    results = []
    for acc, kind in sorted(samplings.items()):
        masks = evaluation_masks(scans, acc, kind)
        sense = Sense(plane_of(list(scans)))
        results.append(Result("sense", acc, 0, 0, _scores(sense, "sense", scans, masks, folder, "untrained")))
        here = {key: by_seed for key, by_seed in groups.items() if key[0] == acc}
        for (_, label, n), by_seed in sorted(here.items(), key=_order):
            members = list(by_seed.values())
            methods = [load(run.weights)[0] for run in members]
            rows = [
                _scores(method, f"{label} acc {acc:g} n {n}", scans, masks, folder, _content(run.weights))
                for method, run in zip(methods, members, strict=True)
            ]
            seeds = dict(zip(by_seed, rows, strict=True))
            results.append(Result(label, acc, n, methods[0].num_parameters, _mean(rows), members, seeds))
    return results


def _key(run: FinishedRun) -> tuple[float, str, int]:
    usual = read_preset("mri", run.config["preset"]) if run.config["preset"] != "auto" else {}
    return run.config["acc"], method_label(run.config, usual), len(run.manifest["data"]["train"])


def _order(item: tuple[tuple[float, str, int], Any]) -> tuple[int, str, int]:
    (_, label, n), _ = item
    return MODELS.index(label.split()[0]), label, n


def _scores(
    method: Method, name: str, scans: Sequence[Scan], masks: dict[str, Tensor], folder: Path, weights: str
) -> list[Row]:
    """Scores of every scan and echo; a scan that was scored before with these weights and mask is read."""
    missing, known = [], {}
    for scan in scans:
        sampled = hashlib.sha256(masks[scan.scan_id].numpy().tobytes()).hexdigest()
        key = fingerprint([METRICS_VERSION, weights, scan.file_key, sampled])
        path = folder / f"{scan.scan_id}-{key}.json"
        known[scan.scan_id] = path
        if not path.exists():
            missing.append(scan)
    if missing:
        total = sum(scan.num_slices * scan.num_echoes for scan in missing)
        with Progress(total, f"scoring {name}", unit="slice") as progress:
            for scan in missing:
                rows = []
                for echo in range(scan.num_echoes):
                    image = volume.reconstruct(method, scan, echo, masks[scan.scan_id], progress.advance)
                    found = asdict(quality(image, volume.target(scan, echo)))
                    rows.append({"scan": scan.scan_id, "echo": echo + 1, **found})
                write_json(known[scan.scan_id], rows)
    return [row for scan in scans for row in cast(list[Row], read_json(known[scan.scan_id]))]


def _mean(per_seed: list[list[Row]]) -> list[Row]:
    rows = []
    for same in zip(*per_seed, strict=True):
        rows.append(same[0] | {name: sum(row[name] for row in same) / len(same) for name in METRICS})
    return rows


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
