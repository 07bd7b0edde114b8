"""K-space in MATLAB files, of v5 to v7 (scipy) and of v7.3 (HDF5)."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import h5py
import numpy as np

from data.fields import matlab
from data.hdf5 import Hdf5File
from data.scans.format import Format
from data.scans.mapped import Mapped
from data.scans.own.arrays import ArrayFile, plane_of, scan_of
from data.scans.own.scan import OwnScan
from data.scans.selection import Shape
from lab.errors import UserError

PARTS = ("real", "imag")
"""The members in which v7.3 stores complex numbers."""


class Matlab(Format):
    """Complex arrays; without notes those with two or three axes are (ky, kz, coil)."""

    name = "MATLAB"
    pattern = "*.mat"

    def owns_file(self, path: Path) -> bool:
        return path.suffix == ".mat" and path.is_file()

    def open(self, path: Path) -> OwnScan:
        return scan_of(opened(path))

    def plane(self, path: Path) -> Shape:
        return plane_of(opened(path))


def opened(path: Path) -> ArrayFile:
    """The file, of whichever version."""
    return Version73(path) if h5py.is_hdf5(path) else Version5(path)


class Version5(ArrayFile):
    """Read whole by scipy."""

    usual: ClassVar[Mapping[int, tuple[str, ...]]] = {2: ("ky", "kz"), 3: ("ky", "kz", "coil")}

    def shapes(self) -> dict[str, Shape]:
        # The list of a file does not say which arrays are complex: any plane or volume may be, until it is read.
        listed = matlab.shapes_in(self.path).items()
        return {name: shape for name, shape in listed if sum(side > 1 for side in shape) >= 2}

    def mapped(self, name: str, order: tuple[int, ...]) -> Mapped:
        return self.stored(name, self.shapes()[name], order)

    def load(self, name: str) -> np.ndarray:
        found = matlab.load(self.path, name)[name]
        if not np.iscomplexobj(found):
            raise UserError(
                f"{self.path}: {name} holds {found.dtype}, but k-space is complex; save complex numbers."
            )
        return found


class Version73(ArrayFile):
    """HDF5, in which MATLAB turns the order of axes around and keeps real and imaginary parts as two members."""

    usual = Version5.usual

    def shapes(self) -> dict[str, Shape]:
        file = Hdf5File(self.path)
        found = {}
        for name in sorted(file.names()):
            entry = file.file.get(name)
            if isinstance(entry, h5py.Dataset) and entry.dtype.names == PARTS:
                found[name] = tuple(entry.shape[::-1])
        file.close()
        return found

    def mapped(self, name: str, order: tuple[int, ...]) -> Mapped:
        return self.stored(name, self.shapes()[name], order)

    def load(self, name: str) -> np.ndarray:
        file = Hdf5File(self.path)
        parts = file.read(name, kinds="V")
        file.close()
        return np.asarray(parts["real"] + 1j * parts["imag"], np.complex64).T
