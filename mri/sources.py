"""Where the scans come from: the folder given, SKM_TEA_ROOT, or synthetic knees made on the spot."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.scans.reader import load_scans
from data.scans.scan import Scan
from data.scans.selection import Selection
from data.scans.skm_tea.format import ROOT_VARIABLE, read_annotations
from data.scans.skm_tea.layout import SPLITS, annotation_path
from lab.console import say
from lab.errors import UserError
from lab.files import fingerprint
from lab.paths import datasets_dir
from mri.config import TrainConfig


@dataclass
class Source:
    """A folder of scans, and what kind of data it says they are."""

    root: Path
    skip_bad: bool = False
    _loaded: dict[tuple[str, int | None], Selection] = field(default_factory=dict)

    def scans(self, split: str, count: int | None = None) -> list[Scan]:
        """The scans of a split, `count` of them in few-shot order; what is left out is said once."""
        key = split, count
        if key not in self._loaded:
            self._loaded[key] = load_scans(self.root, split, count=count, skip_bad=self.skip_bad)
            if report := self._loaded[key].report():
                say(report)
        return self._loaded[key].scans

    def origin(self, scan: Scan) -> str:
        """What kind of data a scan is; files that are not a scanner's own say so themselves."""
        return scan.origin

    def describe(self, train: list[Scan], validation: list[Scan]) -> dict[str, Any]:
        """What the manifest of a run keeps: kind, folder, scans, and a fingerprint of them."""
        listed = {
            name: [[scan.scan_id, scan.path.stat().st_size] for scan in scans]
            for name, scans in (("train", train), ("validation", validation))
        }
        return {
            "name": self.origin(train[0]),
            "root": str(self.root),
            "train": [scan.scan_id for scan in train],
            "validation": [scan.scan_id for scan in validation],
            "plane": list(plane_of(train)),
            "fingerprint": fingerprint(listed),
        }


def find_source(config: TrainConfig) -> Source:
    """The data that the options, or the environment, name; synthetic knees otherwise."""
    named = config.data or os.environ.get(ROOT_VARIABLE)
    if named:
        if not Path(named).is_dir():
            flag = "--data" if config.data else ROOT_VARIABLE
            raise UserError(f"{flag} names {named}, but there is no such folder.")
        source = Source(Path(named), config.skip_bad)
        say(f"data: {source.origin(source.scans('train')[0])}, in {named}")
        return source
    say(
        f"no --data and no {ROOT_VARIABLE}: using the built-in SYNTHETIC KNEES (simulated anatomy, coils, "
        "phase and noise; no patient data)"
    )
    from data.knee.generate import ensure

    x, y, z = config.knee_shape
    folder = datasets_dir() / f"knees-{x}x{y}x{z}"
    root = ensure(max(config.knees, _present(folder)), out=folder, shape=(x, y, z))
    return Source(root, config.skip_bad)


def _present(root: Path) -> int:
    """How many knees the folder lists already: a smaller number asked for does not hide the others."""
    paths = [split for split in SPLITS if annotation_path(root, split).is_file()]
    return sum(len(read_annotations(root, split)) for split in paths)


def plane_of(scans: list[Scan]) -> tuple[int, int]:
    """The size (ky, kz) that the slices of all these scans have."""
    planes = {scan.matrix_shape[1:] for scan in scans}
    if len(planes) != 1:
        sizes = ", ".join(f"{ky} x {kz}" for ky, kz in sorted(planes))
        raise UserError(f"the scans should have slices of one size, but these have {sizes}.")
    return planes.pop()
