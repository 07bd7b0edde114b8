"""What a file format has to say: which files and folders are its own, and how they are opened."""

from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from data.scans.own.notes import read_notes
from data.scans.scan import Scan
from data.scans.selection import Selection, Shape, select
from lab.errors import UserError

SPLITS = ("train", "val", "test")
CYCLE = ("train", "val", "test", "train", "train")
"""Splits of the files of a folder that has no folders of its own for them, in the order of their names."""
COMPANIONS = ("_maps", "_labels")
"""Endings of the names of files that belong to a scan, and are none themselves."""


class Format(ABC):
    """One way of storing scans. A format of single files writes `name`, `pattern`, `owns_file` and `open`.

    The scans of a split are then the files of the folder that bears its name. Where there are no such folders, the
    files of the root itself are shared out. A format with a layout of its own overrides `folder`, or `files`, or
    `owns_folder` and `load`.
    """

    name: str
    pattern: str
    """The files of a folder that may be scans: "*.h5"."""

    @abstractmethod
    def owns_file(self, path: Path) -> bool:
        """Whether a file is of this format; a damaged one may raise a UserError instead."""

    @abstractmethod
    def open(self, path: Path) -> Scan:
        """Open a file of this format; whatever is wrong with it is a UserError that names it."""

    def folder(self, root: Path, split: str) -> Path:
        """Where the scans of a split are."""
        return root / split if any((root / each).is_dir() for each in SPLITS) else root

    def files(self, root: Path, split: str) -> list[Path]:
        """The files of a split."""
        folder = self.folder(root, split)
        others = {_maps_of(path) for path in folder.glob("*.json")}
        found = [
            path
            for path in sorted(folder.glob(self.pattern))
            if not path.stem.endswith(COMPANIONS)
            and not path.name.startswith(".")
            and path.name not in others
        ]
        if folder != root:
            return found
        return [path for number, path in enumerate(found) if CYCLE[number % len(CYCLE)] == split]

    def shared_out(self, root: Path, split: str) -> str:
        """How the files of one folder were shared out among the splits, for people to read; empty if they were not."""
        if self.folder(root, split) != root:
            return ""
        counts = [f"{each} {len(self.files(root, each))}" for each in SPLITS]
        return (
            f"{root} has no folders train, val, test: its scans are shared out by name, {', '.join(counts)}"
        )

    def owns_folder(self, root: Path, split: str) -> bool:
        """Whether the scans of a split below `root` are stored in this format."""
        for path in self.files(root, split):
            with suppress(UserError):  # a damaged file does not hide the others
                if self.owns_file(path):
                    return True
        return False

    def has_scans(self, root: Path, split: str) -> bool:
        """Whether there are scans of a split below `root` in this format."""
        return self.owns_folder(root, split)

    def plane(self, path: Path) -> Shape:
        """(ky, kz) of the slices of a file; a format may know without opening everything."""
        return self.open(path).matrix_shape[1:]

    def load(
        self,
        root: Path,
        split: str,
        *,
        plane: Shape | None,
        count: int | None,
        skip_bad: bool,
        targets: bool = True,
    ) -> Selection:
        """The scans of a split whose slices have the size (None: any), all with a target if asked; see `select`."""
        files = {path.name: path for path in self.files(root, split)}
        found = select(
            {name: plane and self._plane(path, skip_bad) for name, path in files.items()},
            lambda name: with_target(self.open(files[name])) if targets else self.open(files[name]),
            wanted=plane,
            count=count,
            skip_bad=skip_bad,
        )
        found.shared_out = self.shared_out(root, split)
        return found

    def _plane(self, path: Path, skip_bad: bool) -> Shape | None:
        try:
            return self.plane(path)
        except UserError:
            if not skip_bad:
                raise
            return None  # `select` opens the file again and reports why it is left out


def _maps_of(path: Path) -> str | None:
    """What the notes of a scan name as its maps."""
    with suppress(UserError):  # whoever opens the scan is told
        return read_notes(path).maps
    return None


def with_target(scan: Scan) -> Scan:
    """The scan, if it can be learned from and scored: an undersampled one has no target."""
    if scan.undersampled:
        raise UserError(
            f"{scan.path} is {scan.sampling}, so it has no target to learn from or to score against; "
            "mri.reconstruct takes it, and so does mri.train with --supervision self or zero-shot."
        )
    return scan
