"""Options of the commands for scans; nothing here needs torch."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class InfoConfig:
    """Options of `python -m data.scans info`."""

    file: Path
    """A scan: SKM-TEA, fastMRI, ISMRMRD, BART, MATLAB or NumPy."""


@dataclass(frozen=True)
class ShowConfig(InfoConfig):
    """Options of `python -m data.scans show`."""

    out: Path | None = None
    """Folder for the picture (default: that of the file)."""
    slice: int | None = None
    """Slice to show, counting from 0 (default: the middle one)."""
