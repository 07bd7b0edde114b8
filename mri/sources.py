"""From options to training, validation and test scans, and to the slices that training sees.

Scans come from the folder given, from SKM_TEA_ROOT, or are synthetic knees made on the spot.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from torch.utils.data import Subset

from data.scans.reader import FORMATS, load_scans
from data.scans.scan import Scan
from data.scans.selection import Selection
from data.scans.skm_tea.format import ROOT_VARIABLE, read_annotations
from data.scans.skm_tea.layout import SPLITS, annotation_path
from data.scans.slices import EchoesTogether, Slice, SliceDataset
from lab.console import say
from lab.errors import UserError, nearest
from lab.files import fingerprint
from lab.paths import datasets_dir
from mri.config import TrainConfig
from mri.sampling import own_accelerations


@dataclass
class Source:
    """A folder of scans, and what kind of data it says they are."""

    root: Path
    skip_bad: bool = False
    plane: tuple[int, int] | None = None
    """The size (ky, kz) that slices must have; None for any."""
    targets: bool = True
    """Whether scans must be fully sampled, to be learned from or scored against."""
    _loaded: dict[tuple[str, int | None], Selection] = field(default_factory=dict)

    def scans(self, split: str, count: int | None = None) -> list[Scan]:
        """The scans of a split, `count` of them in few-shot order; what is left out is said once."""
        key = split, count
        if key not in self._loaded:
            self._loaded[key] = load_scans(
                self.root,
                split,
                plane=self.plane,
                count=count,
                skip_bad=self.skip_bad,
                targets=self.targets,
            )
            if report := self._loaded[key].report():
                say(report)
        return self._loaded[key].scans

    def scan(self, name: str) -> Scan:
        """The scan of this name, in whatever split it is."""
        found = {scan.scan_id: scan for split in self.splits for scan in self.scans(split)}
        if name not in found:
            known = ", ".join(sorted(found))
            raise UserError(
                f"there is no scan {name!r} in {self.root}{nearest(name, found)}; it has {known}."
            )
        return found[name]

    @property
    def splits(self) -> list[str]:
        """The splits that the folder has scans for."""
        return [split for split in SPLITS if any(form.has_scans(self.root, split) for form in FORMATS)]

    def describe(self, train: list[Scan], validation: list[Scan]) -> dict[str, Any]:
        """What the manifest of a run keeps of its data.

        `source` tells one data set from another, however many of its scans are used; `fingerprint` tells the scans.
        """
        kind = train[0].origin
        undersampled = own_accelerations(train)
        return {
            "name": kind,
            "root": str(self.root),
            "train": [scan.scan_id for scan in train],
            "validation": [scan.scan_id for scan in validation],
            "planes": [list(plane) for plane in planes_of(train)],
            "source": f"{kind} {_told_apart(self.scans('train') if 'train' in self.splits else [], validation)}",
            "fingerprint": _told_apart(train, validation),
            **({"undersampled": undersampled} if undersampled else {}),
        }


def _told_apart(train: list[Scan], validation: list[Scan]) -> str:
    parts = {"train": train, "validation": validation}
    listed = {key: [(each.scan_id, each.path.stat().st_size) for each in parts[key]] for key in parts}
    return fingerprint(listed)


Slices = Subset[Slice] | EchoesTogether


class Samples(NamedTuple):
    """The scans of a run, and the slices of them that training and validation see."""

    train_scans: list[Scan]
    validation_scans: list[Scan]
    train: Slices
    validation: Slices


def samples(options: TrainConfig, source: Source) -> Samples:
    """What a run learns from and what it is validated on: slices, or slices with all their echoes."""
    if options.scan is not None:
        train = validation = [source.scan(options.scan)]
    else:
        train, validation = source.scans("train", options.num_train), source.scans("val")
    _check_names([*train, *validation])
    per_scan = options.slices and options.slices * len(train)
    return Samples(
        train,
        validation,
        evenly(SliceDataset(train, options.echoes), per_scan, options.echoes_together),
        evenly(SliceDataset(validation, options.echoes), options.val_slices, options.echoes_together),
    )


def _check_names(scans: Sequence[Scan]) -> None:
    """Refuse scans of one name that cannot share their masks, which go by the name."""
    known: dict[str, Scan] = {}
    for scan in scans:
        other = known.setdefault(scan.scan_id, scan)
        grids = {(each.matrix_shape[1:], each.acquired_grid, each.undersampled) for each in (scan, other)}
        if len(grids) > 1:
            raise UserError(
                f"{other.path} and {scan.path} have one name, by which masks and scores go, but differ in size or "
                "sampling; rename one of them."
            )


def evenly(slices: SliceDataset, places: int | None, together: bool) -> Slices:
    """`places` evenly spaced slices of all the scans' volumes, each with all its echoes; None for everything.

    The echoes of a slice are samples of their own, or `together` one.
    """
    by_place: dict[tuple[Path, int], list[int]] = {}
    for index, (scan, slice_index, _) in enumerate(slices.items):
        by_place.setdefault((scan.path, slice_index), []).append(index)
    groups = list(by_place.values())
    wanted = len(groups) if places is None else min(places, len(groups))
    chosen = [groups[(2 * number + 1) * len(groups) // (2 * wanted)] for number in range(wanted)]
    if together:
        return EchoesTogether(slices, chosen)
    return Subset(slices, [index for group in chosen for index in group])


def find_source(options: TrainConfig) -> Source:
    """The data that the options, or the environment, name; synthetic knees otherwise."""
    named, targets = options.data or os.environ.get(ROOT_VARIABLE), options.supervision == "full"
    if named:
        if not Path(named).is_dir():
            flag = "--data" if options.data else ROOT_VARIABLE
            if Path(named).is_file():
                raise UserError(
                    f"{flag} takes a folder, and {named} is a file; name its folder, {Path(named).parent}, or give the "
                    "file to python -m mri.reconstruct --input."
                )
            raise UserError(f"{flag} names {named}, but there is no such folder.")
        source = Source(Path(named), options.skip_bad, options.plane, targets)
        say(f"data: {source.scans((source.splits or ['train'])[0])[0].origin}, in {named}")
        return source
    say(
        f"no --data and no {ROOT_VARIABLE}: using the built-in SYNTHETIC KNEES (simulated anatomy, coils, "
        "phase and noise; no patient data)"
    )
    from data.knee.generate import ensure

    folder = datasets_dir() / f"knees-{'x'.join(map(str, options.knee_shape))}"
    root = ensure(max(options.knees, _present(folder)), folder, shape=options.knee_shape)
    return Source(root, options.skip_bad, options.plane, targets)


def _present(root: Path) -> int:
    """How many knees the folder lists already: a smaller number asked for does not hide the others."""
    paths = [split for split in SPLITS if annotation_path(root, split).is_file()]
    return sum(len(read_annotations(root, split)) for split in paths)


def planes_of(scans: Sequence[Scan]) -> list[tuple[int, int]]:
    """The sizes (ky, kz) that the slices of these scans have, the commonest first."""
    return [plane for plane, _ in Counter(scan.matrix_shape[1:] for scan in scans).most_common()]


def words_for(planes: Sequence[tuple[int, int]]) -> str:
    """Sizes of slices for people to read.

    >>> words_for([(512, 160), (512, 152)])
    '512 x 160, 512 x 152'
    """
    return ", ".join(f"{ky} x {kz}" for ky, kz in planes)
