"""The HDF5 layout of generated files.

    a    float32 (samples, x, y)           initial vorticity
    u    float32 (samples, x, y, frames)   vorticity at the times t; one chunk per sample
    t    float64 (frames)                  1, 2, ..., final time

The attributes of the file hold every parameter, the code version and the fingerprint.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from data.generated import check_space
from lab.files import atomic_path


def write_file(
    path: Path, attributes: dict[str, Any], trajectories: Iterable[npt.NDArray[np.float32]]
) -> None:
    """Write trajectories w[x, y, frame], frame 0 being the initial field, one at a time."""
    samples, side, frames = (attributes[name] for name in ("num_samples", "resolution", "final_time"))
    with atomic_path(path) as temporary:
        check_space(temporary, 4 * samples * side**2 * (frames + 1))
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
