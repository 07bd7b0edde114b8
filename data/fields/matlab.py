"""Files of MATLAB v5: what they hold, and arrays out of them. (v7.3 is HDF5.)"""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from lab.errors import UserError


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
        return {name: tuple(shape) for name, shape, _ in whosmat(path)}
    except Exception as error:  # its parser raises a dozen kinds on a damaged file
        raise _unreadable(path, error) from error


def load(path: Path, *names: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of these names."""
    from scipy.io import loadmat

    try:
        found = loadmat(path, variable_names=list(names))
    except Exception as error:
        raise _unreadable(path, error) from error
    if missing := [name for name in names if name not in found]:
        raise UserError(f"{path} has no array {missing[0]}; it is truncated: copy it again.")
    return {name: np.asarray(found[name]) for name in names}


def _unreadable(path: Path, error: Exception) -> UserError:
    return UserError(
        f"{path} cannot be read as a MATLAB file ({error}); it is truncated or of another kind: copy it again."
    )
