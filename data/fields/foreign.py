"""What the readers of other people's files share: the limits of what is read, and a fingerprint of the content."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from data.fields.layout import Layout, Source
from data.hdf5 import Hdf5File
from lab.errors import UserError
from lab.files import fingerprint


def names_in(path: Path) -> set[str]:
    """What the root of an HDF5 file holds; nothing if the file is of another kind."""
    return set(Hdf5File(path).file) if h5py.is_hdf5(path) else set()


def require_dimensions(path: Path, dimensions: int) -> None:
    """Fields lie on a line or in a plane."""
    if dimensions not in (1, 2):
        raise UserError(
            f"{path} holds fields with {dimensions} space dimensions, and two are the limit here; "
            "write plane slices of them, (sample, time, x, y), and give those."
        )


def require_shape(path: Path, name: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Arrays of one file must fit each other."""
    if tuple(found) != tuple(wanted):
        raise UserError(
            f"{path}: {name!r} has the shape {tuple(found)} where the rest of the file asks for {tuple(wanted)}; "
            "the file is damaged or in another layout."
        )


def length_of(path: Path, axis: str, points: npt.ArrayLike) -> float:
    """The length of an axis with equal steps, each point standing for one of them."""
    steps = np.diff(np.asarray(points, dtype=np.float64))
    if len(steps) < 1 or not np.allclose(steps, steps.mean(), rtol=1e-2, atol=0) or steps.mean() == 0:
        raise UserError(
            f"{path}: the points of {axis} are not equally spaced, and only regular grids are read; "
            "interpolate the fields first."
        )
    return float(abs(steps.mean()) * (len(steps) + 1))


def times_of(values: npt.ArrayLike | None, frames: int) -> Tensor:
    """The times of the frames, which some files follow by the end of the last step; 0, 1, ... where none are given."""
    if values is None:
        return torch.arange(frames, dtype=torch.float64)
    times = np.array(values, dtype=np.float64).reshape(-1)[:frames]
    if not np.isfinite(times).all():
        raise ValueError("the times of its frames contain NaN or infinity")
    return torch.from_numpy(times)


def stamped(source: Source) -> Layout:
    """The layout with a fingerprint from the shape and from the first and the last sample."""
    layout, count = source.layout, len(source.samples)
    if count == 0:
        raise UserError(f"{source.path} holds no samples; make or fetch it again.")
    content: list[Any] = [layout.problem, layout.names, count, layout.shape]
    for index in (0, count - 1):
        content.append(source.read(index).tobytes().hex())
        if layout.inputs:
            content.append(source.read_inputs(index).tobytes().hex())
        if layout.constants:
            content.append(source.read_constants(index).tobytes().hex())
    return replace(layout, fingerprint=fingerprint(content))
