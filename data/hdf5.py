"""HDF5 files: opened late, once per process, with errors that name the file; and new ones that survive a full disk.

A file may come from anywhere and be damaged anyhow. Everything that is read passes through here, where its kind and
size are checked before it is read, and whatever the library raises becomes one sentence.
"""

import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from lab.ending import held_signals
from lab.errors import UserError

NUMBERS, REAL = "biufc", "biuf"
"""Kinds of numpy types."""
SMALL = 2**20
"""Bytes that an attribute, a text or a vector of coordinates may have."""
LARGE, COMPRESSION = 2**28, 1100
"""Bytes that may be read at once in any case; and more, if the file's size times the most that gzip can pack."""


class Hdf5File:
    """An HDF5 file that each process opens when it first reads from it; it can be pickled and forked."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._open: h5py.File | None = None
        self._owner = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_open": None, "_owner": 0}

    def __contains__(self, name: str) -> bool:
        with self._explained(f"looking for {name!r}"):
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

    def names(self) -> set[str]:
        """What the file holds at its top."""
        with self._explained("listing it"):
            return set(self.file)

    def attribute_names(self) -> set[str]:
        """The names of the file's attributes."""
        with self._explained("listing its attributes"):
            return set(self.file.attrs)

    def attributes(
        self, required: Mapping[str, type] | None = None, optional: Mapping[str, type] | None = None
    ) -> dict[str, Any]:
        """All attributes as plain values and lists; the required ones are there, and all are of the given kind.

        The kind `list` is a list of texts.
        """
        found = {}
        with self._explained("reading its attributes"):
            for name in self.file.attrs:
                kind = self.file.attrs.get_id(name)
                if math.prod(kind.shape) * kind.dtype.itemsize > SMALL:
                    raise self._wrong(f"the attribute {name!r} has the shape {kind.shape}")
                value = self.file.attrs[name]
                found[name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name in required or {}:
            if name not in found:
                raise UserError(f"{self.path} has no attribute {name!r}; {AGAIN}")
        for name, wanted in {**(required or {}), **(optional or {})}.items():
            if name in found and not _is_a(wanted, found[name]):
                came = f"not {str(found[name])[:40]!r}"
                raise self._wrong(f"the attribute {name!r} should be of type {wanted.__name__}, {came}")
        return found

    def dataset(self, name: str, kinds: str = NUMBERS) -> h5py.Dataset:
        """The data set of this name; its type is one of `kinds` and its data is in this file."""
        with self._explained(f"opening {name!r}"):
            entry = self.file.get(name)
            if not isinstance(entry, h5py.Dataset) or entry.shape is None:
                held = ", ".join(sorted(self.file)) or "nothing"
                raise UserError(f"{self.path} has no data set {name!r} (it holds {held}); {AGAIN}")
            if entry.is_virtual or entry.external or entry.file.filename != self.file.filename:
                raise UserError(f"{self.path}: the data of {name!r} is in other files; copy it into one.")
            if entry.dtype.kind not in kinds:
                raise self._wrong(f"{name!r} holds {entry.dtype}, which cannot be used here")
            return entry

    def read(self, name: str, selection: Any = (), kinds: str = NUMBERS, field: str | None = None) -> Any:
        """Read a selection (whole numbers and slices) of a data set as a numpy array; of records, one field."""
        entry = self.dataset(name, kinds)
        with self._explained(f"reading {name!r}"):
            most = max(LARGE, COMPRESSION * self.path.stat().st_size)
            asked = max(_selected(entry.shape, selection), math.prod(entry.chunks or ()))
            if asked * entry.dtype.itemsize > most:
                raise self._wrong(f"{name!r} claims the size {entry.shape}, more than fits into the file")
            return (entry if field is None else entry.fields(field))[selection]

    def vector(self, name: str) -> npt.NDArray[np.float64]:
        """A short data set with one axis, such as coordinates; its numbers are finite."""
        shape = self.dataset(name, REAL).shape
        if len(shape) != 1 or not 0 < shape[0] <= SMALL // 8:
            raise self._wrong(f"{name!r} should be a vector of coordinates but has the shape {shape}")
        found = np.asarray(self.read(name, kinds=REAL), dtype=np.float64)
        if not np.isfinite(found).all():
            raise self._wrong(f"{name!r} contains NaN or infinity")
        return found

    def text(self, name: str) -> str | bytes:
        """A data set that is one text."""
        entry = self.dataset(name, "OS")
        with self._explained(f"reading {name!r}"):
            one = entry.shape in ((), (1,)) and entry.dtype.itemsize <= SMALL
            found = entry[() if entry.shape == () else 0] if one else None
        if not isinstance(found, str | bytes) or len(found) > SMALL:
            raise self._wrong(f"{name!r} should be one text")
        return found

    def shapes(self, group: str) -> dict[str, tuple[int, ...]]:
        """The data sets of a group and their shapes; none if there is no such group."""
        if group not in self:
            return {}
        with self._explained(f"listing {group!r}"):
            entry = self.file[group]
            if not isinstance(entry, h5py.Group):
                raise self._wrong(f"{group!r} should be a group of data sets")
            names = list(entry)
        return {name: tuple(self.dataset(f"{group}/{name}").shape) for name in names}

    def axis_names(self, name: str) -> list[str]:
        """What the axes of a data set are called, by labels or by the scales attached to them; empty unless all are.

        The attributes are read themselves: the library's own functions trust the sizes that a damaged file tells them.
        """
        entry, names = self.dataset(name), []
        with self._explained(f"reading the axes of {name!r}"):
            labels, scales = (entry.attrs.get(key, ()) for key in ("DIMENSION_LABELS", "DIMENSION_LIST"))
            for axis in range(entry.ndim):
                label = labels[axis] if axis < len(labels) else ""
                if not label and axis < len(scales) and len(scales[axis]):
                    label = str(self.file[scales[axis][0]].name or "").rpartition("/")[2]
                names.append(label.decode() if isinstance(label, bytes) else str(label))
        return names if all(names) else []

    def check(self, name: str, dtype: str, shape: Sequence[int | None]) -> tuple[int, ...]:
        """Return a data set's shape after comparing it and the type; None stands for any length above 0."""
        found = self.dataset(name)
        if found.dtype != dtype:
            raise UserError(f"{self.path}: {name!r} should be {dtype} but is {found.dtype}.")
        fits = len(found.shape) == len(shape) and all(
            have > 0 if want is None else want == have for want, have in zip(shape, found.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if want is None else str(want) for want in shape)
            raise UserError(f"{self.path}: {name!r} should have the shape ({wanted}) but has {found.shape}.")
        return tuple(found.shape)

    def _wrong(self, what: str) -> UserError:
        return UserError(f"{self.path}: {what}; {AGAIN}")

    def _opened(self) -> h5py.File:
        if not self.path.is_file():
            raise UserError(f"there is no file {self.path}; make or fetch it first, or give another path.")
        try:
            return h5py.File(self.path, "r")
        except RAISED as error:
            raise UserError(f"{self.path} is not a whole HDF5 file ({_brief(error)}); {AGAIN}") from error

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        try:
            yield
        except RAISED as error:
            raise UserError(f"{self.path} is damaged: {doing} failed ({_brief(error)}); {AGAIN}") from error


@contextmanager
def new_file(path: Path) -> Iterator[h5py.File]:
    """A new file to write; if that fails, as on a full disk, the block ends with an `OSError`.

    Without this HDF5 would crash the process: it cannot close a file that it failed to write to. Nor can it bear that
    Ctrl-C or SIGTERM interrupt a write: they wait until the end of the block, or `lab.ending.let_signals_through` in
    it. The version of the format is the first with checksums in all that is not data, so that a flipped bit there is
    found too.
    """
    with held_signals(), _Patient(path, "w+") as raw:
        with h5py.File(raw, "w", libver="v110") as file:
            yield file
        if raw.failure is not None:
            raise raw.failure


def checked_storage(chunk: Sequence[int], dtype: str = "f8") -> dict[str, Any]:
    """How data is stored so that damage is found: a checksum per chunk, and NaN where a chunk cannot be found."""
    missing = np.dtype(dtype).type(np.nan)
    return {"dtype": dtype, "chunks": tuple(chunk), "fletcher32": True, "fillvalue": missing}


def make_group(file: h5py.File, name: str) -> None:
    """A group that does not say when it was made, so that files with the same content are equal byte for byte."""
    options = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
    options.set_obj_track_times(False)
    h5py.h5g.create(file.id, name.encode(), gcpl=options)


class _Patient(io.FileIO):
    """A file that HDF5 takes for one that never fails; what it failed at first is its `failure`."""

    failure: OSError | None = None

    def write(self, content: Any) -> int:
        left = memoryview(content).cast("B")
        size = len(left)
        try:
            while left and self.failure is None:
                left = left[super().write(left) :]
        except OSError as error:
            self.failure = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.failure = self.failure or error
            return size or 0


AGAIN = "fetch the file again."
RAISED = (OSError, KeyError, RuntimeError, TypeError, ValueError, AttributeError, OverflowError, MemoryError)
"""What h5py raises on damaged files."""


def num_axes(path: Path, name: str) -> int | None:
    """How many axes a data set has; None if the file is not HDF5 or has no such data set."""
    if not (path.is_file() and h5py.is_hdf5(path)):
        return None
    file = Hdf5File(path)
    try:
        return len(file.dataset(name).shape) if name in file else None
    finally:
        file.close()


def _selected(shape: tuple[int, ...], selection: Any) -> int:
    """How many numbers a selection has."""
    chosen = selection if isinstance(selection, tuple) else (selection,)
    whole = (*chosen, *[slice(None)] * (len(shape) - len(chosen)))
    sides = zip(whole, shape, strict=True)
    return math.prod(len(range(*one.indices(side))) for one, side in sides if isinstance(one, slice))


def _is_a(kind: type, value: Any) -> bool:
    if kind is list:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[text.find("(") + 1 : -1] if text.endswith(")") and "(" in text else text
