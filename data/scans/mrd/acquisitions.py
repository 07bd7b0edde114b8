"""The acquisitions of an ISMRMRD file: which lines there are, where each belongs, and their samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.hdf5 import Hdf5File
from data.scans.mrd.header import Header, parse_header
from lab.console import say
from lab.errors import UserError

Lines = NDArray[np.intp]
NOISE, CALIBRATION, BOTH, REVERSED = 19, 20, 21, 22
OTHERS = {23: "navigator", 24: "phase correction", 26: "feedback", 27: "dummy", 28: "feedback"}
OTHERS |= {29: "coil correction", 30: "phase stabilisation", 31: "phase stabilisation"}
"""Numbers of the flags that say what a line is for, from 1 in the lowest bit."""
FRAMES = ("contrast", "phase", "repetition", "set")
"""Counters of which one may count what is here called echoes."""
AT_ONCE = 512


@dataclass
class Acquisitions:
    """The lines of a file, by their headers; samples are read in portions."""

    path: Path

    @cached_property
    def file(self) -> Hdf5File:
        return Hdf5File(self.path)

    @cached_property
    def group(self) -> str:
        """The group that holds the header and the data, mostly "dataset"."""
        found = [name for name in sorted(self.file.names()) if f"{name}/xml" in self.file]
        if not found or f"{found[0]}/data" not in self.file:
            raise UserError(
                f"{self.path} has no group with 'xml' and 'data', so it is not ISMRMRD; write it again."
            )
        if len(found) > 1 and "dataset" not in found:
            raise UserError(
                f"{self.path} holds several scans ({', '.join(found)}); write each to a file of its own."
            )
        return "dataset" if "dataset" in found else found[0]

    @cached_property
    def header(self) -> Header:
        header = parse_header(self.file.text(f"{self.group}/xml"), self.path)
        if header.trajectory != "cartesian":
            raise UserError(
                f"{self.path} has a {header.trajectory} trajectory; only Cartesian scans are read."
            )
        return header

    @cached_property
    def heads(self) -> Any:
        """The headers of all lines, a structured array."""
        entry = self.file.dataset(f"{self.group}/data", "V")
        if set(entry.dtype.names or ()) != {"head", "traj", "data"} or entry.ndim != 1 or not len(entry):
            raise UserError(f"{self.path}: its 'data' are not acquisitions of ISMRMRD; write it again.")
        return self.file.read(f"{self.group}/data", kinds="V", field="head")

    def flagged(self, number: int) -> NDArray[np.bool_]:
        """Which lines bear a flag."""
        return (self.heads["flags"] >> np.uint64(number - 1)) & np.uint64(1) == 1

    @cached_property
    def noise(self) -> Lines:
        """Lines without signal, measured for the covariance of the coils."""
        return np.flatnonzero(self.flagged(NOISE))

    @cached_property
    def imaging(self) -> Lines:
        """Lines of the image; separate calibration lines only if they are embedded in it."""
        wanted = ~self.flagged(NOISE) & (self.heads["encoding_space_ref"] == 0)
        if self.header.calibration_mode != "embedded":
            wanted &= ~self.flagged(CALIBRATION) | self.flagged(BOTH)
        passed: dict[str, int] = {}
        for number, name in OTHERS.items():
            lines = wanted & self.flagged(number)
            if lines.any():
                passed[name] = passed.get(name, 0) + int(lines.sum())
                wanted &= ~lines
        if passed:
            say(
                f"{self.path.name}: passed over {', '.join(f'{n} {name} lines' for name, n in passed.items())}"
            )
        if not wanted.any():
            raise UserError(f"{self.path} has no imaging lines, only noise, calibration or navigators.")
        return np.flatnonzero(wanted)

    @cached_property
    def calibration(self) -> Lines:
        """Lines for the coil maps alone, of a scan that has them apart from the image; none otherwise."""
        apart = self.flagged(CALIBRATION) & ~self.flagged(BOTH) & (self.heads["encoding_space_ref"] == 0)
        if self.header.calibration_mode == "embedded" or not apart.any():
            return np.flatnonzero(np.zeros(len(apart), bool))
        return np.flatnonzero((apart | self.flagged(BOTH)) & np.isin(self.heads["idx"]["slice"], self.slices))

    @cached_property
    def slices(self) -> list[int]:
        """Slice counters of the image, in the order in which the slices lie: interleaved scans may count otherwise."""
        found = np.unique(self.counter("slice", self.imaging)).tolist()
        if len(found) > 1 and self.header.encoded.matrix[2] > 1:
            raise UserError(
                f"{self.path} has {len(found)} slabs of a 3-D scan; write each to a file of its own."
            )
        places = self.positions(found)
        along = (places - places[0]) @ np.asarray(self.heads["slice_dir"][self.imaging[0]], float)
        in_order = len(set(np.sign(np.diff(along)))) < 2
        if in_order or len(np.unique(along.round(3))) < len(along):  # positions that coincide say nothing
            return found
        say(f"{self.path.name}: its slices are put in the order of their positions, not of their counters")
        return [found[at] for at in np.argsort(along)]

    def positions(self, slices: Sequence[int]) -> NDArray[np.float64]:
        """Where the middle of each of these slices, or of the slab, lies."""
        counters = self.counter("slice", self.imaging)
        firsts = [self.imaging[np.argmax(counters == value)] for value in slices]
        return np.asarray(self.heads["position"][firsts], float)

    @cached_property
    def frames(self) -> tuple[str, list[int]]:
        """The counter that varies (contrast if none does) and its values."""
        values = {name: np.unique(self.counter(name, self.imaging)).tolist() for name in FRAMES}
        varying = [name for name, found in values.items() if len(found) > 1] or ["contrast"]
        if len(varying) > 1:
            counts = " and ".join(f"{len(values[name])} values of {name}" for name in varying)
            raise UserError(
                f"{self.path} has {counts}; only one of them is read: write one to a file of its own."
            )
        return varying[0], values[varying[0]]

    def counter(self, name: str, lines: Lines) -> NDArray[np.int64]:
        """A counter of some lines."""
        return np.asarray(self.heads["idx"][name][lines], np.int64)

    def places(self, lines: Lines) -> NDArray[np.int64]:
        """(ky, kz) of some lines on the encoded grid, frequency zero in the middle."""
        found = []
        for number, n in enumerate(self.header.encoded.matrix[1:], start=1):
            centre = self.header.centres[number - 1]
            place = self.counter(f"kspace_encode_step_{number}", lines)
            place = place - (n // 2 if centre is None else centre) + n // 2
            if n > 1 and (place.min() < 0 or place.max() >= n):
                raise UserError(
                    f"{self.path}: lines lie outside the {n} that its header encodes along phase {number}; the "
                    "header belongs to another scan."
                )
            found.append(place if n > 1 else np.zeros_like(place))
        return np.stack(found, axis=-1)

    def samples(self, lines: Lines) -> Iterator[tuple[Lines, NDArray[np.complex64]]]:
        """Portions of some lines and their samples (line, coil, sample), reversed ones turned around."""
        heads = self.heads[lines]
        kinds = {(int(each["active_channels"]), int(each["number_of_samples"])) for each in heads}
        if len(kinds) != 1:
            raise UserError(
                f"{self.path}: its lines differ in coils or samples ({sorted(kinds)[:3]}); write it again."
            )
        channels, count = kinds.pop()
        backwards = self.flagged(REVERSED)
        for first in range(0, len(lines), AT_ONCE):
            some = lines[first : first + AT_ONCE]
            span = slice(int(some[0]), int(some[-1]) + 1)
            rows = self.file.read(f"{self.group}/data", span, kinds="V", field="data")[some - some[0]]
            if any(len(row) != 2 * channels * count for row in rows):
                raise UserError(f"{self.path}: a line has fewer samples than it says; copy the file again.")
            found = np.stack(rows).astype(np.float32).view(np.complex64).reshape(-1, channels, count)
            found[backwards[some]] = found[backwards[some], :, ::-1]
            yield some, found
