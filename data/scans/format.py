"""What a file format has to say: which files and folders are its own, and how they are opened."""

from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from data.scans.scan import Scan
from data.scans.selection import Selection, Shape, most_frequent, select
from lab.errors import UserError


class Format(ABC):
    """One way of storing scans. A format of single files writes `name`, `pattern`, `owns_file` and `open`.

    The scans of a split are then the files of the folder that bears its name; a format with a layout of its own
    overrides `folder`, or `owns_folder` and `load`.
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
        return root / split

    def owns_folder(self, root: Path, split: str) -> bool:
        """Whether the scans of a split below `root` are stored in this format."""
        for path in self.folder(root, split).glob(self.pattern):
            with suppress(UserError):  # a damaged file does not hide the others
                if self.owns_file(path):
                    return True
        return False

    def plane(self, path: Path) -> Shape:
        """(ky, kz) of the slices of a file; a format may know without opening everything."""
        return self.open(path).matrix_shape[1:]

    def load(
        self, root: Path, split: str, *, shape: Shape | None, count: int | None, skip_bad: bool
    ) -> Selection:
        """The scans of a split whose slices have the shape (None: the most frequent one); see `select`."""
        folder = self.folder(root, split)
        shapes = {path.name: self._plane(path, skip_bad) for path in sorted(folder.glob(self.pattern))}
        wanted = shape or most_frequent(one for one in shapes.values() if one is not None)
        return select(
            shapes, lambda name: self.open(folder / name), wanted=wanted, count=count, skip_bad=skip_bad
        )

    def _plane(self, path: Path, skip_bad: bool) -> Shape | None:
        try:
            return self.plane(path)
        except UserError:
            if not skip_bad:
                raise
            return None  # `select` opens the file again and reports why it is left out
