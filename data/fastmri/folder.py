"""The scans of a fastMRI folder: multicoil_train, multicoil_val, or any folder of such files."""

from pathlib import Path

from data.fastmri.scan import KSPACE, FastMriScan
from data.hdf5 import Hdf5File
from data.selection import Selection, Shape, most_frequent, select
from lab.errors import UserError

SPLIT_FOLDERS = {"train": "multicoil_train", "val": "multicoil_val", "test": "multicoil_val"}
"""fastMRI's own test files are undersampled, so its val files serve as test data."""


def load_folder(
    root: str | Path,
    split: str,
    *,
    shape: Shape | None = None,
    count: int | None = None,
    skip_bad: bool = False,
    cache: str | Path | None = None,
) -> Selection:
    """The scans whose slices have the shape (H, W) (by default the commonest), `count` of them in few-shot order.

    The number of slices may differ from scan to scan.
    """
    folder = Path(root) / SPLIT_FOLDERS.get(split, split)
    files = sorted(folder.glob("*.h5"))
    if not files:
        raise UserError(f"there are no .h5 files in {folder}; name the folder that holds multicoil_train/.")
    shapes = {path.name: _plane(path, skip_bad) for path in files}
    wanted = shape or most_frequent(one for one in shapes.values() if one is not None)
    return select(
        shapes, lambda name: FastMriScan(folder / name, cache), wanted=wanted, count=count, skip_bad=skip_bad
    )


def _plane(path: Path, skip_bad: bool) -> Shape | None:
    """(H, W) of a file; None for one that is to be skipped, which `select` then reports."""
    file = Hdf5File(path)
    try:
        return file.check(KSPACE, "complex64", (None, None, None, None))[2:]
    except UserError:
        if not skip_bad:
            raise
        return None
    finally:
        file.close()
