"""SKM-TEA on disk: its scans are found by the annotation files of its splits."""

from pathlib import Path
from typing import Any

from data.hdf5 import num_axes
from data.scans.format import Format
from data.scans.own.notes import is_orientation
from data.scans.selection import Selection, Shape, select
from data.scans.skm_tea.layout import KSPACE, SPLITS, ScanRecord, annotation_path, scan_path
from data.scans.skm_tea.scan import SkmTeaScan
from lab.errors import UserError
from lab.files import read_json
from lab.paths import plain_name

ROOT_VARIABLE = "SKM_TEA_ROOT"


class SkmTea(Format):
    """Files with 5-D k-space below a folder with annotations; synthetic knees are stored the same way."""

    name = "SKM-TEA"

    def owns_file(self, path: Path) -> bool:
        return path.suffix != ".mat" and num_axes(path, KSPACE) == 5

    def open(self, path: Path) -> SkmTeaScan:
        """Voxel sizes stand in the annotations beside the file; without them they are taken as 1 mm."""
        root = path.resolve().parents[1]
        records = (record for split in listed_splits(root) for record in read_annotations(root, split))
        return SkmTeaScan(path, next((one for one in records if one.file_name == path.name), None))

    def folder(self, root: Path, split: str) -> Path:
        return annotation_path(root, split)

    def owns_folder(self, root: Path, split: str) -> bool:
        return bool(listed_splits(root))

    def has_scans(self, root: Path, split: str) -> bool:
        return split in listed_splits(root) and bool(read_annotations(root, split))

    def load(
        self,
        root: Path,
        split: str,
        *,
        plane: Shape | None,
        count: int | None,
        skip_bad: bool,
        targets: bool = True,
    ) -> Selection:
        """The scans that the annotations list with slices of the size (None: any); all of them have targets."""
        records = {record.file_name: record for record in read_annotations(root, split)}
        return select(
            {name: record.matrix_shape[1:] for name, record in records.items()},
            lambda name: SkmTeaScan(scan_path(root, name), records[name]),
            wanted=plane,
            count=count,
            skip_bad=skip_bad,
        )


def listed_splits(root: Path) -> list[str]:
    """The splits whose scans are listed below `root`."""
    return [split for split in SPLITS if annotation_path(root, split).is_file()]


def read_annotations(root: str | Path, split: str) -> list[ScanRecord]:
    """The scans that an annotation file lists; fields that reconstruction does not use are passed over."""
    if split not in SPLITS:
        raise UserError(f"there is no split {split!r}; choose one of {', '.join(SPLITS)}.")
    path = annotation_path(root, split)
    content = read_json(path)
    try:
        return [_record(image) for image in content["images"]]
    except (KeyError, TypeError, ValueError, OverflowError, UserError) as error:
        raise UserError(
            f"{path}: an entry of 'images' is not as in SKM-TEA ({error!r}); fetch the file again."
        ) from error


def _record(image: dict[str, Any]) -> ScanRecord:
    x, y, z = (int(side) for side in image["matrix_shape"])
    spacing = tuple(float(side) for side in image["voxel_spacing"])
    if len(spacing) != 3:
        raise ValueError(f"voxel_spacing {spacing}")
    orientation = tuple(image["orientation"])
    if len(orientation) != 3 or not is_orientation(orientation):
        raise ValueError(f"orientation {orientation}")
    return ScanRecord(
        id=int(image["id"]),
        file_name=plain_name(str(image["file_name"]), "file_name"),
        scan_id=plain_name(str(image["scan_id"]), "scan_id"),
        subject_id=int(image["subject_id"]),
        voxel_spacing=spacing,
        matrix_shape=(x, y, z),
        orientation=orientation,
        num_echoes=int(image["num_echoes"]),
    )
