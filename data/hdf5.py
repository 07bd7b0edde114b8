"""HDF5 files for reading: opened late, once per process, with errors that name the file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py

from lab.errors import UserError


class Hdf5File:
    """An HDF5 file that each process opens when it first reads from it; it can be pickled and forked.

    `read` and `check` turn whatever is wrong with the file into one sentence.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._open: h5py.File | None = None
        self._owner = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_open": None, "_owner": 0}

    def __contains__(self, name: str) -> bool:
        return name in self.file

    @property
    def file(self) -> h5py.File:
        """The open file."""
        if self._open is None or self._owner != os.getpid():
            self.close()  # a handle inherited through fork shares its descriptor with the parent
            self._open, self._owner = self._opened(), os.getpid()
        return self._open

    def close(self) -> None:
        """Close the file; the next read opens it again."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def dataset(self, name: str) -> h5py.Dataset:
        """The data set of this name."""
        entry = self.file.get(name)
        if not isinstance(entry, h5py.Dataset):
            held = ", ".join(sorted(self.file)) or "nothing"
            raise UserError(f"{self.path} has no data set {name!r} (it holds {held}); fetch the file again.")
        return entry

    def read(self, name: str, selection: Any = ()) -> Any:
        """Read a selection of a data set as a numpy array."""
        try:
            return self.dataset(name)[selection]
        except OSError as error:
            raise UserError(
                f"{self.path} is damaged: reading {name!r} failed ({_brief(error)}); fetch it again."
            ) from error

    def check(self, name: str, dtype: str, shape: Sequence[int | None]) -> tuple[int, ...]:
        """Return a data set's shape after comparing it and the type; None stands for any length."""
        found = self.dataset(name)
        if found.dtype != dtype:
            raise UserError(f"{self.path}: {name!r} should be {dtype} but is {found.dtype}.")
        fits = len(found.shape) == len(shape) and all(
            want is None or want == have for want, have in zip(shape, found.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if want is None else str(want) for want in shape)
            raise UserError(f"{self.path}: {name!r} should have the shape ({wanted}) but has {found.shape}.")
        return tuple(found.shape)

    def _opened(self) -> h5py.File:
        if not self.path.is_file():
            raise UserError(f"there is no file {self.path}; make or fetch it first, or give another path.")
        try:
            return h5py.File(self.path, "r")
        except OSError as error:
            raise UserError(
                f"{self.path} is not a whole HDF5 file ({_brief(error)}); fetch it again."
            ) from error


def num_axes(path: Path, name: str) -> int | None:
    """How many axes a data set has; None if the file is not HDF5 or has no such data set."""
    if not (path.is_file() and h5py.is_hdf5(path)):
        return None
    file = Hdf5File(path)
    try:
        return len(file.dataset(name).shape) if name in file else None
    finally:
        file.close()


def _brief(error: OSError) -> str:
    text = str(error)
    return text[text.find("(") + 1 : -1] if text.endswith(")") and "(" in text else text
