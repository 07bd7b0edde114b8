"""Malformed files from schemas gone wrong: every part of a valid file in turn, replaced by every wrong kind of thing.

What a part is depends on the kind of file: members and attributes of HDF5, arrays of numpy and MATLAB files, entries
of JSON, YAML, checkpoints and the headers of weights; any file is also cut, emptied and replaced as a whole.
"""

import json
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
import yaml

Damage = Callable[[Path], None]
COMPOUND = np.dtype([("re", "f4"), ("name", "S3")])


class Bomb:
    """Unpickled, it leaves a file called `exploded`."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("touch exploded",))


def damages(path: Path) -> Iterator[tuple[str, Damage]]:
    """Every way in which this valid file is made wrong, with words for it."""
    yield from WHOLE.items()
    if h5py.is_hdf5(path):
        yield from _hdf5(path)
    elif path.suffix in BY_SUFFIX:
        yield from BY_SUFFIX[path.suffix](path)


def _replaced(content: bytes) -> Damage:
    return lambda path: path.write_bytes(content) and None


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
    "empty": _replaced(b""),
    "one byte": _replaced(b"\x89"),
    "cut in the middle": _cut(0.5),
    "cut at the end": _cut(0.99),
    "cut at the beginning": _cut(0.02),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)) and None,
    "noise": lambda path: path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size)) and None,
    "text": _replaced(b"not what it seems\n" * 9),
    "not UTF-8": _replaced(b"\xff\xfe{\x00"),
    "pickle": _pickle,
    "pickle in a zip": _zip_of_pickle,
    "folder": _instead(Path.mkdir),
    "pipe": _instead(os.mkfifo),
    "link to nothing": _instead(lambda path: path.symlink_to("nowhere")),
    "link to itself": _instead(lambda path: path.symlink_to(path.name)),
    "device": _instead(lambda path: path.symlink_to("/dev/zero")),
}


def _hdf5(path: Path) -> Iterator[tuple[str, Damage]]:
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
            raise SystemExit(0)  # there is no array here to change
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

VALUES: dict[str, Any] = {
    "null": None,
    "empty list": [],
    "empty table": {},
    "list": [[1], "a", None],
    "text": "zzz",
    "empty text": "",
    "path upwards": "../../elsewhere",
    "absolute path": "/elsewhere/x",
    "true": True,
    "negative": -1,
    "zero": 0,
    "fraction": 0.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "huge": 10**9,
    "astronomical": 10**400,
    "long text": "x" * 100_000,
    "NUL": "a\0b",
    "one in a list": [1],
}
"""What an entry of JSON, YAML or a header may be by mistake."""


def _places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places in nested tables and lists; of long lists the first and the last."""
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = list(value)
    elif isinstance(value, list):
        inner = sorted({0, len(value) - 1}) if value else []
    for key in inner:
        yield (*before, key)
        yield from _places(value[key], (*before, key))


def _changed(value: Any, place: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    owner = value
    for key in place[:-1]:
        owner = owner[key]
    change(owner, place[-1])
    return value


def _entries(
    path: Path, load: Callable[[Path], Any], save: Callable[[Path, Any], None]
) -> Iterator[tuple[str, Damage]]:
    def at(place: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Damage:
        return lambda path: save(path, _changed(load(path), place, change))

    for wrong, value in VALUES.items():
        yield f"as a whole: {wrong}", lambda path, value=value: save(path, value)
    for place in _places(load(path)):
        words = ".".join(map(str, place))
        yield f"{words}: absent", at(place, lambda owner, key: owner.__delitem__(key))
        for wrong, value in VALUES.items():
            yield (
                f"{words}: {wrong}",
                at(place, lambda owner, key, value=value: owner.__setitem__(key, value)),
            )


def _json(path: Path) -> Iterator[tuple[str, Damage]]:
    yield "deep", _replaced(b"[" * 100_000)
    yield "deep tables", _replaced(b'{"a":' * 100_000)
    yield "two of them", _replaced(b"{}{}")
    yield "a number of 5000 digits", _replaced(b"9" * 5000)
    yield from _entries(
        path,
        lambda path: json.loads(path.read_text()),
        lambda path, value: path.write_text(json.dumps(value)) and None,
    )


def _yaml(path: Path) -> Iterator[tuple[str, Damage]]:
    aliases = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 26))
    yield "deep", _replaced(b"[" * 5000)
    yield "a tree of aliases", _replaced(aliases.encode())
    yield "an object of Python", _replaced(b"name: !!python/object/apply:os.system ['touch exploded']\n")
    yield "tabs", _replaced(b"a:\n\t- b\n")
    yield from _entries(
        path,
        lambda path: yaml.safe_load(path.read_text()),
        lambda path, value: path.write_text(yaml.safe_dump(value)) and None,
    )


def _csv(path: Path) -> Iterator[tuple[str, Damage]]:
    for wrong, value in {
        "text": b"zzz",
        "nothing": b"",
        "NaN": b"nan",
        "too many": b"1,2,3,4,5,6,7,8,9,10,11,12",
    }.items():
        for row in (0, 1):
            yield f"row {row}: {wrong}", lambda path, row=row, value=value: _row(path, row, value)


def _row(path: Path, row: int, value: bytes) -> None:
    lines = path.read_bytes().splitlines()
    lines[row] = value
    path.write_bytes(b"\n".join(lines))


def _weights(path: Path) -> Iterator[tuple[str, Damage]]:
    yield "an endless header", _replaced((2**30).to_bytes(8, "little") + b"{")
    yield "a header as long as can be", _replaced((2**63).to_bytes(8, "little") + b"{")
    yield from _entries(path, _header, _with_header)
    for wrong, tensor in {"none": None, "scalar": torch.zeros(()), "NaN": torch.tensor(float("nan")), "long":
                          torch.zeros(9, dtype=torch.int64)}.items():  # fmt: skip
        yield f"first tensor: {wrong}", lambda path, tensor=tensor: _with_tensor(path, tensor)


def _header(path: Path) -> Any:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["monarch"])


def _with_header(path: Path, header: Any) -> None:
    from safetensors.torch import load_file, save_file

    save_file(load_file(path), path, metadata={"monarch": json.dumps(header)})


def _with_tensor(path: Path, tensor: Any) -> None:
    from safetensors.torch import load_file, save_file

    header, tensors = _header(path), load_file(path)
    first = min(tensors)
    if tensor is None:
        del tensors[first]
    else:
        tensors[first] = tensor
    save_file(tensors, path, metadata={"monarch": json.dumps(header)})


def _checkpoint(path: Path) -> Iterator[tuple[str, Damage]]:
    yield from _entries(
        path, lambda path: torch.load(path, weights_only=True), lambda path, value: torch.save(value, path)
    )


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
    "NaN": lambda array: array * np.nan if array.dtype.kind in "fiu" else np.array(np.nan),
    "zeros": lambda array: np.zeros_like(array),
}

BY_SUFFIX: dict[str, Callable[[Path], Iterator[tuple[str, Damage]]]] = {
    ".json": _json,
    ".yaml": _yaml,
    ".csv": _csv,
    ".safetensors": _weights,
    ".ckpt": _checkpoint,
    ".npz": lambda path: _arrays(path, lambda path, arrays: np.savez(path, **arrays)),
    ".npy": lambda path: _arrays(path, _save_npy),
    ".mat": lambda path: _arrays(path, _save_mat),
}
