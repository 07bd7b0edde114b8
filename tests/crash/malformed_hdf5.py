"""HDF5 files gone wrong: every member and attribute in turn, replaced by every wrong kind of thing."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

Damage = Callable[[Path], None]
COMPOUND = np.dtype([("re", "f4"), ("name", "S3")])


def hdf5(path: Path) -> Iterator[tuple[str, Damage]]:
    members: list[str] = []
    attributes: list[tuple[str, str]] = []
    with h5py.File(path) as file:
        file.visit(members.append)
        for owner in ("/", *members):
            attributes += [(owner, name) for name in file[owner].attrs]
    for name in members:
        for wrong in MEMBERS:
            yield f"{name}: {wrong}", lambda path, name=name, wrong=wrong: _put(path, name, MEMBERS[wrong])
    for owner, name in attributes:
        for wrong in ATTRIBUTES:
            label = f"attribute {name} of {owner}: {wrong}"
            yield (
                label,
                lambda path, owner=owner, name=name, wrong=wrong: _attribute(path, owner, name, wrong),
            )


def _put(path: Path, name: str, put: Callable[[h5py.File, str, Any], None]) -> None:
    with h5py.File(path, "r+") as file:
        entry = file[name]
        before = entry[()] if isinstance(entry, h5py.Dataset) else None
        attributes = dict(entry.attrs)
        del file[name]
        put(file, name, before)
        if name in file and isinstance(file.get(name), h5py.Dataset):
            file[name].attrs.update({k: v for k, v in attributes.items() if k.isidentifier() and k.islower()})


def _attribute(path: Path, owner: str, name: str, wrong: str) -> None:
    with h5py.File(path, "r+") as file:
        del file[owner].attrs[name]
        if wrong != "absent":
            file[owner].attrs[name] = ATTRIBUTES[wrong]


def _array(change: Callable[[np.ndarray], Any]) -> Callable[[h5py.File, str, Any], None]:
    def put(file: h5py.File, name: str, before: Any) -> None:
        if before is None or not isinstance(before, np.ndarray):
            raise ValueError("there is no array here to change")
        file[name] = change(before)

    return put


def _filled(value: float) -> Callable[[h5py.File, str, Any], None]:
    def change(array: np.ndarray) -> np.ndarray:
        changed = array.astype(np.result_type(array.dtype, np.float32))
        changed.flat[changed.size // 2] = value
        return changed

    return _array(change)


MEMBERS: dict[str, Callable[[h5py.File, str, Any], Any]] = {
    "absent": lambda file, name, _: None,
    "group": lambda file, name, _: file.create_group(name),
    "link to nothing": lambda file, name, _: file.__setitem__(name, h5py.SoftLink("/nowhere")),
    "link to itself": lambda file, name, _: file.__setitem__(name, h5py.SoftLink(f"/{name}")),
    "link to an absent file": lambda file, name, _: file.__setitem__(
        name, h5py.ExternalLink("absent.h5", "x")
    ),
    "link to a password file": lambda file, name, _: file.__setitem__(
        name, h5py.ExternalLink("/etc/passwd", "x")
    ),
    "named type": lambda file, name, _: file.__setitem__(name, np.dtype("f4")),
    "texts": lambda file, name, _: file.__setitem__(name, ["a", "b"]),
    "compound": lambda file, name, _: file.create_dataset(name, (3,), COMPOUND),
    "null": lambda file, name, _: file.__setitem__(name, h5py.Empty("f4")),
    "scalar": lambda file, name, _: file.__setitem__(name, 1.0),
    "seven axes": lambda file, name, _: file.__setitem__(name, np.zeros([1] * 7, "f4")),
    "nothing in it": lambda file, name, _: file.create_dataset(name, (0,), "f4"),
    "absurdly long": lambda file, name, _: file.create_dataset(name, (2**50,), "f8", chunks=(1024,)),
    "absurd on every axis": lambda file, name, _: file.create_dataset(
        name, [2**15] * 4, "c8", chunks=(1, 8, 8, 8)
    ),
    "complex": _array(lambda array: array + 1j),
    "one axis less": _array(lambda array: array[0]),
    "one axis more": _array(lambda array: array[None]),
    "a row less": _array(lambda array: array[:-1]),
    "no rows": _array(lambda array: array[:0]),
    "whole numbers": _array(lambda array: array.real.astype(np.int64)),
    "NaN": _filled(np.nan),
    "infinity": _filled(np.inf),
    "all NaN": _array(lambda array: array * np.nan),
    "zeros": _array(np.zeros_like),
}

ATTRIBUTES: dict[str, Any] = {
    "absent": None,
    "vector": np.arange(3),
    "matrix of texts": [["a", "b"], ["c", "d"]],
    "nothing": h5py.Empty("f4"),
    "fraction": 1.5,
    "NaN": float("nan"),
    "compound": np.zeros((), COMPOUND),
    "deep": "[" * 60_000,
    "huge": 2**62,
    "negative": -1,
    "text": "../../elsewhere",
    "bytes that are no text": np.bytes_(b"\xff\xfe"),
}
