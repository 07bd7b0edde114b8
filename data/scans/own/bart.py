"""BART: NAME.hdr, a text with up to 16 sizes, and NAME.cfl, complex64 in Fortran order.

    # Dimensions
    320 256 1 8 1 1 1 1 1 1 1 1 1 1 1 1

Dimensions 0 to 5 are readout, phase 1, phase 2, coil, maps and echo, 10 is time and 13 the slice.
"""

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.scans.format import Format
from data.scans.mapped import Mapped
from data.scans.own.arrays import ArrayFile, plane_of, scan_of
from data.scans.own.notes import Notes
from data.scans.own.scan import OwnScan
from data.scans.selection import Shape
from lab.errors import UserError
from lab.files import atomic_path

DIMENSIONS = {0: "kx", 1: "ky", 2: "kz", 3: "coil", 5: "echo", 10: "echo", 13: "slice"}
MAPS, COUNT = 4, 16
LONGEST_HEADER = 100_000


class Bart(Format):
    """Pairs of .cfl and .hdr; either may be named, or both without their endings."""

    name = "BART"
    pattern = "*.cfl"

    def owns_file(self, path: Path) -> bool:
        return path.suffix in (".cfl", ".hdr") or (not path.exists() and _with(path, ".cfl").is_file())

    def open(self, path: Path) -> OwnScan:
        return scan_of(BartFile(_with(path, ".cfl")))

    def plane(self, path: Path) -> Shape:
        return plane_of(BartFile(_with(path, ".cfl")))


class BartFile(ArrayFile):
    """One array, mapped as it is; its axes are those of the header that are longer than 1."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.sizes = read_header(path)
        used = {number: size for number, size in self.sizes.items() if size > 1 and number != MAPS}
        if others := [number for number in used if number not in DIMENSIONS]:
            raise UserError(
                f"{path} has {used[others[0]]} entries along BART's dimension {others[0]}; only readout, phases, "
                f"coils, maps, echoes or times, and slices are read: take one with bart slice {others[0]} 0."
            )
        self.names = [DIMENSIONS[number] for number in used]
        if self.names.count("echo") > 1:
            raise UserError(f"{path} has echoes and times; take one of them with bart slice.")
        if self.sizes.get(MAPS, 1) > 1:
            raise UserError(f"{path} has {self.sizes[MAPS]} sets of maps; take one with bart slice {MAPS} 0.")
        self.raw_shape = tuple(used.values())

    def shapes(self) -> dict[str, Shape]:
        return {"": self.raw_shape}

    def axes(self, notes: Notes) -> list[str] | None:
        return notes.axes or self.names

    def mapped(self, name: str, order: tuple[int, ...]) -> Mapped:
        return Mapped(self.path, order, self.raw_shape)


def read_header(path: Path) -> dict[int, int]:
    """The sizes of the dimensions of NAME.cfl, after comparing them with the length of the file."""
    header = _with(path, ".hdr")
    for each in (path, header):
        if not each.is_file():
            raise UserError(f"there is no {each}; a BART array is a pair of .cfl and .hdr files.")
    lines = header.read_bytes()[:LONGEST_HEADER].decode("latin-1").splitlines()
    marks = [number for number, line in enumerate(lines) if line.strip() == "# Dimensions"]
    try:
        sizes = [int(word) for word in lines[marks[0] + 1].split()]
    except (IndexError, ValueError) as error:
        raise UserError(f"{header} has no line of sizes after '# Dimensions'; copy it again.") from error
    if not 0 < len(sizes) <= COUNT or min(sizes) < 1:
        raise UserError(f"{header} lists the sizes {sizes}; up to {COUNT} positive ones are expected.")
    needed, there = 8 * prod(sizes), path.stat().st_size
    if needed != there:
        raise UserError(f"{path} has {there} bytes where its header asks for {needed}; copy it again.")
    return dict(enumerate(sizes))


def write(path: Path, array: NDArray[np.complex64], sizes: Sequence[int]) -> Path:
    """Write an array, whose elements in Fortran order have these sizes, as NAME.cfl and NAME.hdr."""
    filled = [*sizes, *[1] * (COUNT - len(sizes))]
    with atomic_path(_with(path, ".hdr")) as temporary:
        temporary.write_text(f"# Dimensions\n{' '.join(map(str, filled))} \n")
    with atomic_path(_with(path, ".cfl")) as temporary:
        np.asfortranarray(array, "<c8").ravel(order="F").tofile(temporary)
    return _with(path, ".cfl")


def _with(path: Path, suffix: str) -> Path:
    """The path with this ending, in place of .cfl or .hdr: BART's names may contain dots."""
    return path.with_suffix(suffix) if path.suffix in (".cfl", ".hdr") else Path(f"{path}{suffix}")
