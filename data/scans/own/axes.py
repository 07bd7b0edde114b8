"""Arrays of k-space with named axes, brought into one order: (slice, echo, coil, ky, kz).

Two axes in k-space, whatever their names, are the plane of a slice. Three are a 3-D scan: kx is its readout, along
which the volume is transformed into image space, so that each of its positions is a slice of (ky, kz).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from data.scans.own.notes import notes_path
from lab.errors import UserError

NAMES = ("slice", "echo", "coil", "kx", "ky", "kz")
FREQUENCIES = ("kx", "ky", "kz")


@dataclass(frozen=True)
class Arrangement:
    """How the axes of an array become (slice, echo, coil, ky, kz); -1 stands for an axis of length 1 that is new."""

    order: tuple[int, int, int, int, int]
    three_dimensional: bool
    """Whether the first axis is still in k-space."""

    @property
    def of_maps(self) -> tuple[int, ...]:
        """The order (slice, coil, ky, kz) of maps that have the same axes without the echoes."""
        slices, echo, *others = self.order
        kept = [axis - (0 <= echo < axis) if axis >= 0 else -1 for axis in (slices, *others)]
        return tuple(kept)


def arrange(
    path: Path, shape: tuple[int, ...], axes: list[str] | None, usual: Mapping[int, tuple[str, ...]]
) -> Arrangement:
    """The arrangement of an array whose axes are named, or are those usual for their number."""
    names = list(axes or usual.get(len(shape), ()))
    if not names:
        raise UserError(f"{path} holds an array of shape {shape}, whose axes it does not name; {_say(path)}.")
    if len(names) != len(shape) or len(set(names)) != len(names) or not set(names) <= set(NAMES):
        raise UserError(
            f"{notes_path(path)} names the axes {', '.join(names)} of an array of shape {shape}; name each of its "
            f"{len(shape)} axes once, from {', '.join(NAMES)}."
        )
    sizes = dict(zip(names, shape, strict=True))
    waves = [name for name in FREQUENCIES if name in sizes]
    if len(waves) == 3 and sizes.get("slice", 1) > 1:
        raise UserError(f"{path} has slices and three axes of k-space; a 3-D scan has no slices.")
    if len(waves) < 2 or min(shape) < 1:
        raise UserError(
            f"{path} needs two axes of k-space at least, not {', '.join(names)} of shape {shape}."
        )
    plane = waves[-2:]
    if axes is None and sizes.get("coil", 1) >= min(sizes[name] for name in plane):
        raise UserError(
            f"{path} would be read as {sizes.get('coil', 1)} coils and slices of {sizes[plane[0]]} x {sizes[plane[1]]} "
            f"({', '.join(names)}), which is unlikely; {_say(path)}."
        )
    first = waves[0] if len(waves) == 3 else "slice"
    slices, echo, coil, ky, kz = (
        names.index(name) if name in names else -1 for name in (first, "echo", "coil", *plane)
    )
    return Arrangement((slices, echo, coil, ky, kz), len(waves) == 3)


def _say(path: Path) -> str:
    return f'write {{"axes": ["slice", "coil", "ky", "kz"]}}, or what they are, into {notes_path(path)}'
