"""One way in for every MRI data set: open a file or a folder, whatever its format."""

from pathlib import Path

from data.fastmri.folder import SPLIT_FOLDERS, load_folder
from data.fastmri.scan import FastMriScan
from data.hdf5 import Hdf5File
from data.selection import Selection, Shape
from data.skm_tea.layout import KSPACE, SPLITS, annotation_path
from data.skm_tea.scan import SkmTeaScan
from data.skm_tea.split import find_root, load_split, read_annotations
from data.slices import Scan


def open_scan(path: str | Path) -> Scan:
    """A single file: SKM-TEA's layout has 5-D k-space, fastMRI's 4-D.

    Voxel sizes of an SKM-TEA scan stand in the annotations beside it; without them they are taken as 1 mm.
    """
    file = Hdf5File(path)
    dimensions = file.dataset(KSPACE).ndim
    file.close()
    if dimensions == 4:
        return FastMriScan(path)
    root = file.path.resolve().parents[1]
    for split in SPLITS:
        if annotation_path(root, split).is_file():
            for record in read_annotations(root, split):
                if record.file_name == file.path.name:
                    return SkmTeaScan(path, record)
    return SkmTeaScan(path)


def load_scans(
    root: str | Path | None,
    split: str,
    *,
    shape: Shape | None = None,
    count: int | None = None,
    skip_bad: bool = False,
) -> Selection:
    """The scans of a split below `root` (None: SKM_TEA_ROOT), in either format; see `load_split`, `load_folder`."""
    if root is not None and (Path(root) / SPLIT_FOLDERS.get(split, split)).is_dir():
        return load_folder(root, split, shape=shape, count=count, skip_bad=skip_bad)
    return load_split(find_root(root), split, shape=shape, count=count, skip_bad=skip_bad)
