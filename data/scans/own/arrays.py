"""From a file of arrays to a scan: which array is k-space, which the maps, and what their axes are."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import ClassVar

import numpy as np

from data.scans.mapped import Mapped
from data.scans.own.axes import Arrangement, arrange
from data.scans.own.notes import Notes, notes_path, read_notes
from data.scans.own.scan import OwnScan
from data.scans.own.store import Complex, file_key, kept, readout_transformed
from lab.errors import UserError

KSPACE = ("kspace", "ksp", "kdata", "k", "data")
MAPS = ("maps", "sens", "smaps", "csm", "sensitivities", "coil_maps")
"""Names that arrays go by, the likeliest first."""

Shape = tuple[int, ...]


class ArrayFile(ABC):
    """A file with complex arrays; a format says which there are and how one is brought onto the disk."""

    usual: ClassVar[Mapping[int, tuple[str, ...]]] = {}
    """Axes of arrays that nobody names, by their number."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def shapes(self) -> dict[str, Shape]:
        """The complex arrays by name."""

    @abstractmethod
    def mapped(self, name: str, order: tuple[int, ...]) -> Mapped:
        """One of them, its axes in this order."""

    def axes(self, notes: Notes) -> list[str] | None:
        """The names of the axes of k-space, if they are known."""
        return notes.axes

    def key(self) -> str:
        """Names what is kept of the file."""
        notes = notes_path(self.path)
        return file_key(self.path, *([notes] if notes.is_file() else []))

    def stored(self, name: str, shape: Shape, order: tuple[int, ...]) -> Mapped:
        """An array that `load` reads whole, kept on disk to be mapped."""

        def fill(array: Complex) -> None:
            array[...] = self.load(name)

        whole = kept(self.path, self.key(), name, shape, 24 * prod(shape), fill)
        return Mapped(whole.path, order)

    def load(self, name: str) -> np.ndarray:
        """One of the arrays, read whole."""
        raise NotImplementedError


def scan_of(file: ArrayFile) -> OwnScan:
    """The scan in a file of arrays, with the notes and maps beside it."""
    notes, shapes = read_notes(file.path), file.shapes()
    name = _kspace(file.path, shapes, notes)
    arrangement = arrange(file.path, shapes[name], file.axes(notes), file.usual)
    maps = _maps(file, shapes, notes, arrangement)
    kspace = file.mapped(name, arrangement.order)
    if arrangement.three_dimensional:
        kspace = readout_transformed(file.path, file.key(), kspace)
    return OwnScan(file.path, kspace, notes, maps=maps, three_dimensional=arrangement.three_dimensional)


def plane_of(file: ArrayFile) -> Shape:
    """(ky, kz) of the slices, without reading them."""
    notes, shapes = read_notes(file.path), file.shapes()
    shape = shapes[_kspace(file.path, shapes, notes)]
    return tuple(shape[axis] for axis in arrange(file.path, shape, file.axes(notes), file.usual).order[3:])


def _kspace(path: Path, shapes: Mapping[str, Shape], notes: Notes) -> str:
    if notes.variable is not None:
        if notes.variable not in shapes:
            raise UserError(f"{path} has no complex array {notes.variable!r}; it has {_listed(shapes)}.")
        return notes.variable
    others = [name for name in shapes if name.lower() not in MAPS and name != notes.maps]
    if len(others) == 1:
        return others[0]
    for likely in KSPACE:
        if found := [name for name in others if name.lower() == likely]:
            return found[0]
    if not shapes:
        raise UserError(f"{path} has no complex array, so no k-space; save real + 1j * imaginary.")
    raise UserError(
        f"{path} has {_listed(shapes)}, and which of them is k-space is not clear; "
        f'write {{"variable": "NAME"}} into {notes_path(path)}.'
    )


def _maps(
    file: ArrayFile, shapes: Mapping[str, Shape], notes: Notes, arrangement: Arrangement
) -> Mapped | None:
    usual = [name for name in shapes if name.lower() in MAPS]
    inside = usual if notes.maps is None else [name for name in shapes if name == notes.maps]
    if inside:
        return _ordered(file, inside[0], shapes[inside[0]], arrangement)
    beside = maps_beside(file.path, notes, (file.path.suffix, ".npy", ".cfl"))
    if beside is None:
        return None
    if beside.suffix == ".cfl" != file.path.suffix:
        return maps_in(beside)  # BART's axes have an order of their own
    other = _opened(beside)
    return _ordered(other, *_first(other), arrangement)


def maps_beside(path: Path, notes: Notes, endings: Iterable[str]) -> Path | None:
    """The file of coil maps beside a scan: the one its notes name, or NAME_maps with the first of these endings."""
    if notes.maps is not None:
        named = path.with_name(notes.maps)
        if not named.is_file():
            raise UserError(f"{notes_path(path)} names the maps {notes.maps}, but there is no {named}.")
        return named
    likely = (path.with_name(f"{path.stem}_maps{ending}") for ending in endings)
    return next((each for each in likely if each.is_file()), None)


def maps_in(path: Path) -> Mapped:
    """The coil maps (slice, coil, ky, kz) of a file that says itself what its axes are."""
    file = _opened(path)
    name, shape = _first(file)
    axes = file.axes(Notes()) or list(file.usual.get(len(shape), ())) or None
    slices, _, *others = arrange(path, shape, axes, file.usual).order
    return file.mapped(name, (slices, *others))


def _first(maps: ArrayFile) -> tuple[str, Shape]:
    """The name and shape of the array in a file of coil maps."""
    if not (found := maps.shapes()):
        raise UserError(f"{maps.path} has no complex array, so no coil maps; save real + 1j * imaginary.")
    return next(iter(found.items()))


def _opened(path: Path) -> ArrayFile:
    """A file of arrays, by its ending."""
    from data.scans.own.bart import BartFile
    from data.scans.own.matlab import opened
    from data.scans.own.numpy_file import NumpyFile

    if path.suffix == ".mat":
        return opened(path)
    if path.suffix not in (".npy", ".npz", ".cfl"):
        raise UserError(f"coil maps are .npy, .npz, .cfl or .mat files, not {path}.")
    return BartFile(path) if path.suffix == ".cfl" else NumpyFile(path)


def _ordered(file: ArrayFile, name: str, shape: Shape, arrangement: Arrangement) -> Mapped:
    order = arrangement.of_maps
    if len(shape) != sum(axis >= 0 for axis in order):
        raise UserError(
            f"{file.path}: maps have the shape {shape}; they need the axes of k-space without the echoes."
        )
    return file.mapped(name, order)


def _listed(shapes: Mapping[str, Shape]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "none"
