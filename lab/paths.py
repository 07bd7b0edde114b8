"""Where generated data, runs and presets are."""

import os
from pathlib import Path, PureWindowsPath

from lab.errors import UserError

LONGEST_NAME = 150
"""Bytes of a name from outside; file systems allow 255, and names get endings."""


def datasets_dir() -> Path:
    """`datasets/` in the current folder, or wherever MONARCH_DATA points: generated data and caches."""
    return Path(os.environ.get("MONARCH_DATA") or "datasets")


def runs_dir() -> Path:
    """`runs/` in the current folder, or wherever MONARCH_RUNS points: one folder per run."""
    return Path(os.environ.get("MONARCH_RUNS") or "runs")


def presets_dir(app: str) -> Path:
    """The folder with an application's presets; it is installed beside the packages."""
    return Path(__file__).parent.parent / "configs" / app


def plain_name(name: str, what: str) -> str:
    """The name, if it can only ever name something within a folder; `what` says whose name it is.

    Names from flags and files become parts of paths: none may lead elsewhere.

    >>> plain_name("MTR_001", "--name")
    'MTR_001'
    >>> plain_name("../MTR_001", "--name")
    Traceback (most recent call last):
    lab.errors.UserError: --name must be a plain folder name, without slashes or a dot in front, not '../MTR_001'.
    """
    # Windows' notion of a path includes that of the other systems, and drives.
    is_plain = name.isprintable() and PureWindowsPath(name).name == name and not name.startswith(".")
    if not name or not is_plain:
        raise UserError(
            f"{what} must be a plain folder name, without slashes or a dot in front, not {name!r}."
        )
    if len(os.fsencode(name)) > LONGEST_NAME:
        raise UserError(
            f"{what} must be a plain folder name of at most {LONGEST_NAME} bytes, not {name[:20]!r}..."
        )
    return name
