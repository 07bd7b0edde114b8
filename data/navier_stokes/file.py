"""The HDF5 layout of generated files.

    a    float32 (samples, x, y)           initial vorticity
    u    float32 (samples, x, y, frames)   vorticity at the times t; one chunk per sample
    t    float64 (frames)                  1, 2, ..., final time

The attributes of the file hold every parameter, the code version and the fingerprint.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from data.navier_stokes.config import GenerateConfig
from lab.errors import UserError
from lab.files import atomic_path


def write_file(
    path: Path, attributes: dict[str, Any], trajectories: Iterable[npt.NDArray[np.float32]]
) -> None:
    """Write trajectories w[x, y, frame], frame 0 being the initial field, one at a time."""
    samples, side, frames = (attributes[name] for name in ("num_samples", "resolution", "final_time"))
    with atomic_path(path) as temporary:
        _check_space(temporary, 4 * samples * side**2 * (frames + 1))
        _write(temporary, attributes, trajectories)


def _write(path: Path, attributes: dict[str, Any], trajectories: Iterable[npt.NDArray[np.float32]]) -> None:
    samples, side, frames = (attributes[name] for name in ("num_samples", "resolution", "final_time"))
    with h5py.File(path, "w") as file:
        file.attrs.update(attributes)
        a = file.create_dataset("a", (samples, side, side), "f4", chunks=(1, side, side))
        u = file.create_dataset("u", (samples, side, side, frames), "f4", chunks=(1, side, side, frames))
        file["t"] = np.arange(1.0, frames + 1)
        for i, trajectory in enumerate(trajectories):
            a[i], u[i] = trajectory[..., 0], trajectory[..., 1:]


def _check_space(path: Path, size: int) -> None:
    """Fail here, cleanly, if the disk is too full: once HDF5 has failed to write it can crash the process."""
    if not hasattr(os, "posix_fallocate"):  # macOS
        return
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size + 2**16)


def read_attributes(path: Path) -> dict[str, Any]:
    """The attributes of a generated file; empty for any other HDF5 file."""
    with open_file(path) as file:
        return dict(file.attrs)


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


def holds(path: Path, config: GenerateConfig) -> bool:
    """Whether the file is there and contains the samples asked for."""
    if not path.is_file():
        return False
    found = read_attributes(path)
    same_flow = found.get("fingerprint") == config.flow.fingerprint
    return (
        same_flow
        and found["first_sample"] == config.samples.start
        and bool(found["num_samples"] >= len(config.samples))
    )
