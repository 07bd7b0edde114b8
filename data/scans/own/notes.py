"""What a file of numbers does not say about itself, in NAME.json beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from data.scans.scan import Timing
from lab.errors import UserError, nearest
from lab.files import read_json

NUMBERS = ("repetition_ms", "echo_ms", "flip_degrees")
WAYS = ({"S", "I"}, {"A", "P"}, {"L", "R"})


@dataclass(frozen=True)
class Notes:
    """The entries of NAME.json, all of them optional."""

    axes: list[str] | None = None
    """Names of the array's axes: slice, echo, coil, kx, ky, kz."""
    variable: str | None = None
    """Which array of the file is k-space, if it has several."""
    maps: str | None = None
    """File of coil maps, or array of the same file, with the axes of k-space but without echoes."""
    voxel_spacing: list[float] | None = None
    """Millimetres along slices and the two axes of a slice."""
    orientation: list[str] | None = None
    """From where to where those axes run, as in ["SI", "AP", "LR"]."""
    repetition_ms: float | None = None
    echo_ms: float | None = None
    """Of the first echo."""
    flip_degrees: float | None = None
    origin: str = "own data"
    """What the data are, for people to read."""

    @property
    def timing(self) -> Timing | None:
        """Timing and flip angle, if all of them are there."""
        found = [getattr(self, name) for name in NUMBERS]
        return None if None in found else Timing(*map(float, found))


def notes_path(path: Path) -> Path:
    """Where the notes of a file are."""
    return path.with_suffix(".json")


def read_notes(path: Path) -> Notes:
    """The notes of a file; empty ones if there are none."""
    where = notes_path(path)
    if not where.is_file():
        return Notes()
    content, known = read_json(where), [field.name for field in fields(Notes)]
    if not isinstance(content, dict):
        raise UserError(f"{where} should hold one object with entries like {', '.join(known)}.")
    for key, value in content.items():
        if key not in known:
            raise UserError(
                f"{where} has an entry {key!r}{nearest(key, known)}; known are {', '.join(known)}."
            )
        if not _fits(key, value):
            raise UserError(f"{where}: {value!r} cannot be the {key} of a scan; see docs/own-data-mri.md.")
    return Notes(**content)


def _fits(key: str, value: Any) -> bool:
    if key in NUMBERS:
        return isinstance(value, int | float) and value > 0
    if key == "voxel_spacing":
        return _listed(value, int | float) and len(value) == 3 and min(value) > 0
    if key == "orientation":
        return _listed(value, str) and is_orientation(value)
    return _listed(value, str) if key == "axes" else isinstance(value, str)


def is_orientation(axes: Sequence[str]) -> bool:
    """Whether these are three directions, one along each axis of the body."""
    chosen = [set(each) for each in axes]
    return len(chosen) == 3 and all(way in chosen for way in WAYS) and all(len(each) == 2 for each in axes)


def _listed(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)
