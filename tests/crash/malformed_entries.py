"""Tables of entries gone wrong: JSON, YAML, CSV, headers of weights, checkpoints; every entry in turn."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import yaml

Damage = Callable[[Path], None]

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
    yield "deep", replaced(b"[" * 100_000)
    yield "deep tables", replaced(b'{"a":' * 100_000)
    yield "two of them", replaced(b"{}{}")
    yield "a number of 5000 digits", replaced(b"9" * 5000)
    yield from _entries(
        path,
        lambda path: json.loads(path.read_text()),
        lambda path, value: path.write_text(json.dumps(value)) and None,
    )


def _yaml(path: Path) -> Iterator[tuple[str, Damage]]:
    aliases = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 26))
    yield "deep", replaced(b"[" * 5000)
    yield "a tree of aliases", replaced(aliases.encode())
    yield "an object of Python", replaced(b"name: !!python/object/apply:os.system ['touch exploded']\n")
    yield "tabs", replaced(b"a:\n\t- b\n")
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
    yield "an endless header", replaced((2**30).to_bytes(8, "little") + b"{")
    yield "a header as long as can be", replaced((2**63).to_bytes(8, "little") + b"{")
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


def replaced(content: bytes) -> Damage:
    """The file has another content."""
    return lambda path: path.write_bytes(content) and None


BY_SUFFIX: dict[str, Callable[[Path], Iterator[tuple[str, Damage]]]] = {
    ".json": _json,
    ".yaml": _yaml,
    ".csv": _csv,
    ".safetensors": _weights,
    ".ckpt": _checkpoint,
}
