"""Files that a generator has made: what they say of themselves, and room for them on the disk."""

import os
from pathlib import Path
from typing import Any

import h5py

from lab.errors import UserError


def open_file(path: Path) -> h5py.File:
    """Open an HDF5 file to read."""
    if not path.is_file():
        raise UserError(f"there is no file {path}.")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise UserError(
            f"{path} cannot be read as HDF5 ({error}); it is truncated or of another kind, copy or make it again."
        ) from error


def read_attributes(path: Path) -> dict[str, Any]:
    """The attributes of a generated file; empty for any other HDF5 file."""
    with open_file(path) as file:
        return dict(file.attrs)


def holds(path: Path, fingerprint: str, samples: range) -> bool:
    """Whether the file is there and contains the samples asked for."""
    if not path.is_file():
        return False
    found = read_attributes(path)
    return (
        found.get("fingerprint") == fingerprint
        and found["first_sample"] == samples.start
        and bool(found["num_samples"] >= len(samples))
    )


def check_space(path: Path, size: int) -> None:
    """Fail here, cleanly, if the disk is too full: once HDF5 has failed to write it can crash the process."""
    if not hasattr(os, "posix_fallocate"):  # macOS
        return
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size + 2**16)
