"""One way in for every MRI data set: open a file or a folder, whatever its format."""

import os
from pathlib import Path

from data.scans.fastmri.format import FastMri
from data.scans.format import Format
from data.scans.mrd.format import Mrd
from data.scans.own.bart import Bart
from data.scans.own.matlab import Matlab
from data.scans.own.numpy_file import Numpy
from data.scans.scan import Scan
from data.scans.selection import Selection, Shape
from data.scans.skm_tea.format import ROOT_VARIABLE, SkmTea
from lab.errors import UserError, readable

OWN: tuple[Format, ...] = (Mrd(), Bart(), Matlab(), Numpy())
"""Formats whose scans may lie in any folder."""
FORMATS: tuple[Format, ...] = (SkmTea(), FastMri(), *OWN)
"""Tried in this order; the first that owns a file or folder reads it."""


def open_scan(path: str | Path) -> Scan:
    """The scan in a file, of whatever format."""
    form = format_of(path)
    with readable(Path(path)):
        return form.open(Path(path))


def format_of(path: str | Path) -> Format:
    """The format of a file."""
    path = Path(path)
    with readable(path):
        for form in FORMATS:
            if form.owns_file(path):
                return form
    if not path.exists():
        raise UserError(f"there is no file {path}; make or fetch it first, or give another path.")
    raise UserError(
        f"{path} is not a scan in a format known here ({_names()}); fetch it again or convert it."
    )


def load_scans(
    root: str | Path | None,
    split: str,
    *,
    plane: Shape | None = None,
    count: int | None = None,
    skip_bad: bool = False,
    targets: bool = True,
) -> Selection:
    """The scans of a split below `root` (None: the folder that SKM_TEA_ROOT names), of whatever format.

    Only scans with slices of that size (ky, kz) take part (None: all). `count` takes the first scans of the few-shot
    order, so that smaller subsets lie in larger ones. A scan that cannot be used raises, unless `skip_bad`.
    """
    named = root or os.environ.get(ROOT_VARIABLE)
    if not named:
        raise UserError(f"no data were named; pass --data FOLDER or set {ROOT_VARIABLE}.")
    for form in FORMATS:
        if form.owns_folder(Path(named), split):
            found = form.load(
                Path(named), split, plane=plane, count=count, skip_bad=skip_bad, targets=targets
            )
            found.dropped |= _of_other_formats(form, Path(named), split)
            return found
    layouts = " or ".join(f"{form.folder(Path(named), split)} ({form.name})" for form in FORMATS[:2])
    others = ", ".join(form.name for form in FORMATS[2:])
    raise UserError(
        f"{'--data' if root else ROOT_VARIABLE} names {named}, but there is no {layouts} with scans for {split}, nor a "
        f"folder {split} or at least three files of other formats ({others}); name the folder above it."
    )


def _of_other_formats(form: Format, root: Path, split: str) -> dict[str, str]:
    """Files beside the scans that other formats would read, and why they are left out."""
    others = [other for other in OWN if form in OWN and other.pattern != form.pattern]
    counts = {other.name: len(other.files(root, split)) for other in others}
    return {
        f"{count} {name} file{'s' if count > 1 else ''}": f"a folder is read in one format, here {form.name}."
        for name, count in counts.items()
        if count
    }


def _names() -> str:
    return ", ".join(form.name for form in FORMATS)
