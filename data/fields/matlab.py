"""Files of MATLAB v5: what they hold, and arrays out of them. (v7.3 is HDF5.)"""

import struct
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from lab.errors import UserError

TYPES = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 15, 16, 17, 18}
"""Numbers of MATLAB's types of data."""
COMPRESSED = 15
LOOKED_AT = 4096
"""Bytes of each array."""


def is_matlab(path: Path) -> bool:
    """Whether the file is one of MATLAB up to v7, by its first bytes or, damaged, by its name."""
    if h5py.is_hdf5(path):
        return False
    with path.open("rb") as file:
        return file.read(6) == b"MATLAB" or path.suffix == ".mat"


def shapes_in(path: Path) -> dict[str, tuple[int, ...]]:
    """The arrays of a file and their shapes; none if it is of another kind."""
    from scipy.io import whosmat

    if not is_matlab(path):
        return {}
    try:
        _refuse_unknown_types(path)
        return {name: tuple(shape) for name, shape, _ in whosmat(path)}
    except Exception as error:  # its parser raises a dozen kinds on a damaged file
        raise _unreadable(path, error) from error


def load(path: Path, *names: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of these names."""
    from scipy.io import loadmat

    try:
        _refuse_unknown_types(path)
        found = loadmat(path, variable_names=list(names))
    except Exception as error:
        raise _unreadable(path, error) from error
    if missing := [name for name in names if name not in found]:
        raise UserError(f"{path} has no array {missing[0]}; it is truncated: copy it again.")
    return {name: np.asarray(found[name]) for name in names}


def _refuse_unknown_types(path: Path) -> None:
    """scipy crashes the process at a type of data that MATLAB does not have; look at the beginning of each array."""
    with path.open("rb") as file:
        ends = file.read(128)[126:]
        order = {b"IM": "<II", b"MI": ">II"}.get(ends)
        while order is not None and len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(order, tag)
            start = file.tell()
            content = file.read(min(size, LOOKED_AT))
            if kind == COMPRESSED:
                content = zlib.decompressobj().decompress(content, LOOKED_AT)[8:]
            _check_types(content, order)
            file.seek(start + size)


def _check_types(content: bytes, order: str) -> None:
    place = 0
    for _ in range(4):  # what it is, its shape, its name, its numbers
        if place + 8 > len(content):
            return
        kind, size = struct.unpack_from(order, content, place)
        small = kind >> 16  # a few bytes stand in the tag itself
        if (kind & 0xFFFF if small else kind) not in TYPES:
            raise ValueError(f"data of an unknown type, {kind}")
        place += 8 if small else 8 + -(-size // 8) * 8


def _unreadable(path: Path, error: Exception) -> UserError:
    return UserError(
        f"{path} cannot be read as a MATLAB file ({error}); it is truncated or of another kind: copy it again."
    )
