"""fastMRI on disk: files in multicoil_train and multicoil_val, or in any folder named as a split."""

from pathlib import Path

from data.hdf5 import Hdf5File, num_axes
from data.scans.fastmri.scan import KSPACE, FastMriScan
from data.scans.format import Format
from data.scans.selection import Shape

VALIDATION = "multicoil_val"


class FastMri(Format):
    """Files with 4-D k-space; the number of slices may differ from scan to scan.

    fastMRI's own test files are undersampled, so the volumes of multicoil_val are shared out: of their sorted names
    every second one is for validation, the others are for the test.
    """

    name = "fastMRI"
    pattern = "*.h5"

    def owns_file(self, path: Path) -> bool:
        return path.suffix != ".mat" and num_axes(path, KSPACE) == 4

    def open(self, path: Path) -> FastMriScan:
        return FastMriScan(path)

    def folder(self, root: Path, split: str) -> Path:
        own = root / ("multicoil_train" if split == "train" else VALIDATION)
        return own if own.is_dir() or not (root / split).is_dir() else root / split

    def files(self, root: Path, split: str) -> list[Path]:
        listed = self.folder(root, split).glob(self.pattern)
        found = sorted(path for path in listed if not path.name.startswith("."))
        return found if self._whole(root, split) else found[split == "test" :: 2]

    def shared_out(self, root: Path, split: str) -> str:
        if self._whole(root, split):
            return ""
        count, total = len(self.files(root, split)), len(list((root / VALIDATION).glob(self.pattern)))
        return (
            f"{split}: {count} of the {total} volumes in {VALIDATION}; val and test have every second one, by name, "
            "and none in common"
        )

    def _whole(self, root: Path, split: str) -> bool:
        """Whether a split has a folder to itself."""
        return split == "train" or self.folder(root, split).name != VALIDATION

    def plane(self, path: Path) -> Shape:
        file = Hdf5File(path)
        try:
            return file.check(KSPACE, "complex64", (None, None, None, None))[2:]
        finally:
            file.close()
