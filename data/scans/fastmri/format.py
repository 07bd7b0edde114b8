"""fastMRI on disk: files in multicoil_train and multicoil_val, or in any folder named as a split."""

from pathlib import Path

from data.hdf5 import Hdf5File, num_axes
from data.scans.fastmri.scan import KSPACE, FastMriScan
from data.scans.format import Format
from data.scans.selection import Shape

SPLIT_FOLDERS = {"train": "multicoil_train", "val": "multicoil_val", "test": "multicoil_val"}
"""fastMRI's own test files are undersampled, so its val files serve as test data."""


class FastMri(Format):
    """Files with 4-D k-space; the number of slices may differ from scan to scan."""

    name = "fastMRI"
    pattern = "*.h5"

    def owns_file(self, path: Path) -> bool:
        return num_axes(path, KSPACE) == 4

    def open(self, path: Path) -> FastMriScan:
        return FastMriScan(path)

    def folder(self, root: Path, split: str) -> Path:
        return root / SPLIT_FOLDERS.get(split, split)

    def plane(self, path: Path) -> Shape:
        file = Hdf5File(path)
        try:
            return file.check(KSPACE, "complex64", (None, None, None, None))[2:]
        finally:
            file.close()
