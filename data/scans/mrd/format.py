"""ISMRMRD files as scans."""

from pathlib import Path

import h5py

from data.hdf5 import Hdf5File
from data.scans.format import Format
from data.scans.mrd.acquisitions import Acquisitions
from data.scans.mrd.sorter import Sorter
from data.scans.own.scan import OwnScan
from data.scans.selection import Shape


class Mrd(Format):
    """HDF5 files of ISMRMRD: 2-D scans of one or several slices, and 3-D scans, whose slices lie along the readout."""

    name = "ISMRMRD"
    pattern = "*.h5"

    def owns_file(self, path: Path) -> bool:
        if not (path.is_file() and path.suffix != ".mat" and h5py.is_hdf5(path)):
            return False
        file = Hdf5File(path)
        try:
            return any(f"{name}/xml" in file for name in file.names())
        finally:
            file.close()

    def open(self, path: Path) -> OwnScan:
        lines = Acquisitions(path)
        try:
            return Sorter(lines).scan()
        finally:
            lines.file.close()

    def plane(self, path: Path) -> Shape:
        lines = Acquisitions(path)
        try:
            return Sorter(lines).plane
        finally:
            lines.file.close()
