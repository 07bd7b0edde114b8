"""Malformed files from schemas gone wrong: every part of a valid file in turn, replaced by every wrong kind of thing.

What a part is depends on the kind of file: members and attributes of HDF5, arrays of numpy and MATLAB files, entries
of JSON, YAML, checkpoints and the headers of weights; any file is also cut, emptied and replaced as a whole.
"""

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from tests.crash import malformed_entries
from tests.crash.malformed_entries import replaced
from tests.crash.malformed_hdf5 import COMPOUND, Damage, hdf5


class Bomb:
    """Unpickled, it leaves a file called `exploded`."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("touch exploded",))


def damages(path: Path) -> Iterator[tuple[str, Damage]]:
    """Every way in which this valid file is made wrong, with words for it."""
    if path.is_dir():  # a format of many files
        for part in sorted(each for each in path.rglob("*") if each.is_file()):
            name = part.relative_to(path)
            for label, damage in damages(part):
                yield f"{name}: {label}", lambda path, name=name, damage=damage: damage(path / name)
        return
    yield from WHOLE.items()
    if h5py.is_hdf5(path):
        yield from hdf5(path)
    elif path.suffix in BY_SUFFIX:
        yield from BY_SUFFIX[path.suffix](path)


def _cut(share: float) -> Damage:
    return lambda path: os.truncate(path, int(path.stat().st_size * share))


def _instead(make: Callable[[Path], Any]) -> Damage:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


def _pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Bomb()))


def _zip_of_pickle(path: Path) -> None:
    torch.save({"state_dict": Bomb(), "monarch_lab": {}}, path)


WHOLE: dict[str, Damage] = {
    "absent": Path.unlink,
    "empty": replaced(b""),
    "one byte": replaced(b"\x89"),
    "cut in the middle": _cut(0.5),
    "cut at the end": _cut(0.99),
    "cut at the beginning": _cut(0.02),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)) and None,
    "noise": lambda path: path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size)) and None,
    "text": replaced(b"not what it seems\n" * 9),
    "not UTF-8": replaced(b"\xff\xfe{\x00"),
    "pickle": _pickle,
    "pickle in a zip": _zip_of_pickle,
    "folder": _instead(Path.mkdir),
    "pipe": _instead(os.mkfifo),
    "link to nothing": _instead(lambda path: path.symlink_to("nowhere")),
    "link to itself": _instead(lambda path: path.symlink_to(path.name)),
    "device": _instead(lambda path: path.symlink_to("/dev/zero")),
}


def _arrays(path: Path, save: Callable[[Path, dict[str, Any]], None]) -> Iterator[tuple[str, Damage]]:
    names = list(_loaded(path))
    for name in names:
        for wrong, change in ARRAYS.items():
            yield (
                f"{name}: {wrong}",
                lambda path, name=name, change=change: save(path, _with_array(_loaded(path), name, change)),
            )


def _loaded(path: Path) -> dict[str, Any]:
    if path.suffix == ".mat":
        from scipy.io import loadmat

        return {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
    found = np.load(path)
    return {"array": found} if isinstance(found, np.ndarray) else dict(found)


def _with_array(arrays: dict[str, Any], name: str, change: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    changed = change(arrays.pop(name))
    return arrays if changed is None else {**arrays, name: changed}


def _save_npy(path: Path, arrays: dict[str, Any]) -> None:
    if not arrays:
        path.write_bytes(b"")
    for array in arrays.values():
        np.save(path, array, allow_pickle=True)


def _save_mat(path: Path, arrays: dict[str, Any]) -> None:
    from scipy.io import savemat

    savemat(path, {name: value if value.dtype != object else "bomb" for name, value in arrays.items()})


ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "absent": lambda array: None,
    "objects": lambda array: np.array([Bomb()], dtype=object),
    "texts": lambda array: np.array(["a", "b"]),
    "compound": lambda array: np.zeros(3, COMPOUND),
    "scalar": lambda array: np.array(1.0),
    "empty": lambda array: np.zeros((0, *array.shape[1:])),
    "seven axes": lambda array: np.zeros([1] * 7),
    "one axis less": lambda array: array[0] if array.ndim else array,
    "one axis more": lambda array: array[None],
    "a row less": lambda array: array[:-1] if array.ndim else array,
    "complex": lambda array: array + 1j if array.dtype.kind in "fiu" else np.array(1j),
    "all NaN": lambda array: array * np.nan if array.dtype.kind in "fiu" else np.array(np.nan),
    "zeros": lambda array: np.zeros_like(array),
}

BY_SUFFIX: dict[str, Callable[[Path], Iterator[tuple[str, Damage]]]] = {
    **malformed_entries.BY_SUFFIX,
    ".npz": lambda path: _arrays(path, lambda path, arrays: np.savez(path, **arrays)),
    ".npy": lambda path: _arrays(path, _save_npy),
    ".mat": lambda path: _arrays(path, _save_mat),
}
