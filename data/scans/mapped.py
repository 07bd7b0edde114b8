"""Arrays that stay on disk: mapped into memory when they are first read."""

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lab.errors import UserError
from lab.files import atomic_path, reserve


def write_array(path: Path, shape: Sequence[int], fill: Callable[[NDArray[np.complex64]], None]) -> None:
    """Make a .npy file, its space reserved: a full disk would kill whoever writes to memory that is mapped."""
    with atomic_path(path) as temporary:
        array = open_memmap(temporary, "w+", np.complex64, tuple(shape))
        reserve(temporary, temporary.stat().st_size)
        fill(array)
        array.flush()
        del array  # Windows does not rename a file that is mapped


class Mapped:
    """An array in a .npy file, or raw complex64 in Fortran order (BART); it can be pickled, its data is not copied.

    `order` permutes its axes, -1 standing for a new axis of length 1; axes that it does not name have length 1.
    """

    def __init__(
        self, path: Path, order: Sequence[int] | None = None, raw_shape: Sequence[int] | None = None
    ) -> None:
        self.path, self._order, self._raw_shape = path, order, raw_shape
        self._array: NDArray[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": None}

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return self.array[index]

    @property
    def array(self) -> NDArray[Any]:
        """The whole array, not yet read."""
        if self._array is None:
            opened = self._open()
            if self._order is not None:
                kept = [axis for axis in self._order if axis >= 0]
                dropped = [axis for axis in range(opened.ndim) if axis not in kept]
                opened = opened.transpose(kept + dropped)
                opened = opened.reshape(opened.shape[: len(kept)])
                new = [place for place, axis in enumerate(self._order) if axis < 0]
                opened = np.expand_dims(opened, tuple(new))
            self._array = opened
        return self._array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape after the permutation."""
        return self.array.shape

    def _open(self) -> NDArray[Any]:
        try:
            if self._raw_shape is not None:
                return np.memmap(self.path, "<c8", mode="r", shape=tuple(self._raw_shape), order="F")
            found: NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
            return found
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise UserError(f"{self.path} is not a whole array ({error}); make or fetch it again.") from error
