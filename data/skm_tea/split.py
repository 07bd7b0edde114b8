"""The scans of SKM-TEA's splits: found by the annotation files, filtered by shape, in nested subsets."""

import os
from pathlib import Path
from typing import Any

from data.selection import Selection, Shape, most_frequent, select
from data.skm_tea.layout import SPLITS, ScanRecord, annotation_path, scan_path
from data.skm_tea.scan import SkmTeaScan
from lab.errors import UserError
from lab.files import read_json

ROOT_VARIABLE = "SKM_TEA_ROOT"


def find_root(given: str | Path | None = None) -> Path:
    """The folder of the data: the one given, or the one that SKM_TEA_ROOT names."""
    named = given or os.environ.get(ROOT_VARIABLE)
    source = "--data" if given else ROOT_VARIABLE
    if not named:
        raise UserError(f"no SKM-TEA data were named; pass --data FOLDER or set {ROOT_VARIABLE}.")
    root = Path(named)
    if not any(annotation_path(root, split).is_file() for split in SPLITS):
        raise UserError(
            f"{source} names {root}, but there is no {annotation_path(root, 'train')}; "
            "name the folder that holds annotations/ and files_recon_calib-24/."
        )
    return root


def read_annotations(root: str | Path, split: str) -> list[ScanRecord]:
    """The scans that an annotation file lists; fields that reconstruction does not use are passed over."""
    if split not in SPLITS:
        raise UserError(f"there is no split {split!r}; choose one of {', '.join(SPLITS)}.")
    path = annotation_path(root, split)
    content = read_json(path)
    try:
        return [_record(image) for image in content["images"]]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: an entry of 'images' is not as in SKM-TEA ({error!r}); fetch the file again."
        ) from error


def load_split(
    root: str | Path,
    split: str,
    *,
    shape: Shape | None = None,
    count: int | None = None,
    skip_bad: bool = False,
) -> Selection:
    """The scans of a split that have the shape (by default the commonest of all splits), `count` of them.

    `count` takes the first scans of the few-shot order, so that smaller subsets lie in larger ones.
    """
    records = {record.file_name: record for record in read_annotations(root, split)}
    if shape is None:
        present = [name for name in SPLITS if annotation_path(root, name).is_file()]
        shape = most_frequent([one.matrix_shape for name in present for one in read_annotations(root, name)])

    def open_scan(file_name: str) -> SkmTeaScan:
        return SkmTeaScan(scan_path(root, file_name), records[file_name])

    shapes = {name: record.matrix_shape for name, record in records.items()}
    return select(shapes, open_scan, wanted=shape, count=count, skip_bad=skip_bad)


def _record(image: dict[str, Any]) -> ScanRecord:
    x, y, z = (int(side) for side in image["matrix_shape"])
    spacing = tuple(float(side) for side in image["voxel_spacing"])
    if len(spacing) != 3:
        raise ValueError(f"voxel_spacing {spacing}")
    return ScanRecord(
        id=int(image["id"]),
        file_name=str(image["file_name"]),
        scan_id=str(image["scan_id"]),
        subject_id=int(image["subject_id"]),
        voxel_spacing=spacing,
        matrix_shape=(x, y, z),
        orientation=tuple(image["orientation"]),
        num_echoes=int(image["num_echoes"]),
    )
