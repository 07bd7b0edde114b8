"""K-space in .npy and .npz files."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from data.scans.format import Format
from data.scans.mapped import Mapped
from data.scans.own.arrays import ArrayFile, plane_of, scan_of
from data.scans.own.scan import OwnScan
from data.scans.selection import Shape
from lab.errors import UserError

RAISED = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile)


class Numpy(Format):
    """Complex arrays; without notes their axes are the last of (slice, coil, ky, kz), with five also the echo."""

    name = "NumPy"
    pattern = "*.np[yz]"

    def owns_file(self, path: Path) -> bool:
        return path.suffix in (".npy", ".npz") and path.is_file()

    def open(self, path: Path) -> OwnScan:
        return scan_of(NumpyFile(path))

    def plane(self, path: Path) -> Shape:
        return plane_of(NumpyFile(path))


class NumpyFile(ArrayFile):
    """A .npy file, which is mapped as it is, or a .npz file, whose arrays are read."""

    usual: ClassVar[Mapping[int, tuple[str, ...]]] = {
        2: ("ky", "kz"),
        3: ("coil", "ky", "kz"),
        4: ("slice", "coil", "ky", "kz"),
        5: ("slice", "echo", "coil", "ky", "kz"),
    }

    def shapes(self) -> dict[str, Shape]:
        try:
            if self.path.suffix == ".npz":
                return _complex_arrays(self.path)
            found = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except RAISED as error:
            raise UserError(f"{self.path} is not a whole NumPy file ({error}); write it again.") from error
        if not np.iscomplexobj(found):
            raise UserError(
                f"{self.path} holds {found.dtype}, but k-space is complex; save real + 1j * imaginary."
            )
        return {"": found.shape}

    def mapped(self, name: str, order: tuple[int, ...]) -> Mapped:
        return self.stored(name, self.shapes()[name], order) if name else Mapped(self.path, order)

    def load(self, name: str) -> np.ndarray:
        with np.load(self.path, allow_pickle=False) as file:
            return np.asarray(file[name])


def _complex_arrays(path: Path) -> dict[str, Shape]:
    """The shapes of the complex arrays of a .npz file, from their headers alone."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = read(file)
                if dtype.kind == "c":
                    found[member.removesuffix(".npy")] = shape
    return found
