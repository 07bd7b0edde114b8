"""The XML header of ISMRMRD: what was encoded, what is to be reconstructed, and with which sequence."""

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from data.scans.scan import Timing
from lab.errors import UserError

NAMESPACE = "{http://www.ismrm.org/ISMRMRD}"
Size = tuple[int, int, int]


@dataclass(frozen=True)
class Space:
    """A grid along (readout, phase 1, phase 2) and its size in millimetres."""

    matrix: Size
    field_of_view: tuple[float, float, float]

    @property
    def spacing(self) -> tuple[float, float, float]:
        """Millimetres between points."""
        x, y, z = (length / n for length, n in zip(self.field_of_view, self.matrix, strict=True))
        return x, y, z


@dataclass(frozen=True)
class Header:
    """What is needed of the first encoding of a file."""

    encoded: Space
    recon: Space
    centres: tuple[int | None, int | None]
    """The counters of phase 1 and phase 2 at frequency zero."""
    last_line: int | None
    """The largest counter of phase 1."""
    trajectory: str
    calibration_mode: str
    timing: dict[str, float]
    """Of the fields of `Timing`, those that the header gives."""
    echo_times: tuple[float, ...] = ()
    """Milliseconds, of each contrast."""

    def centred_lines(self) -> int:
        """How many lines of phase 1 the smallest interval around the centre has that holds those acquired.

        >>> space = Space((8, 16, 1), (1.0, 1.0, 1.0))
        >>> Header(space, space, (6, None), 13, "cartesian", "", {}).centred_lines()
        16
        >>> Header(space, space, (5, None), 9, "cartesian", "", {}).centred_lines()
        10
        """
        lines, centre = self.encoded.matrix[1], self.centres[0]
        if centre is None or self.last_line is None:
            return lines
        return min(lines, 2 * max(centre, self.last_line + 1 - centre))

    @property
    def kept_readout(self) -> int:
        """Points of the readout that remain in image space without the oversampling."""
        n, share = self.encoded.matrix[0], self.recon.field_of_view[0] / self.encoded.field_of_view[0]
        return min(n, max(1, round(n * share)))


def parse_header(xml: bytes | str, path: Path) -> Header:
    """Read the header of a file; `path` is named when something is missing."""
    try:
        root = ElementTree.fromstring(xml)
        encoding = root.find(f"{NAMESPACE}encoding")
        if encoding is None:
            raise ValueError("no encoding")
        encoded = _space(encoding, "encodedSpace")
        there = encoding.find(f"{NAMESPACE}reconSpace") is not None
        limits = "encodingLimits/kspace_encoding_step_"
        return Header(
            encoded,
            _space(encoding, "reconSpace") if there else encoded,
            (_whole(encoding, f"{limits}1/center"), _whole(encoding, f"{limits}2/center")),
            _whole(encoding, f"{limits}1/maximum"),
            _text(encoding, "trajectory") or "cartesian",
            _text(encoding, "parallelImaging/calibrationMode") or "",
            _timing(root),
            tuple(float(one.text or "") for one in root.iterfind(_steps("sequenceParameters/TE"))),
        )
    except (ElementTree.ParseError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise UserError(f"{path}: its ISMRMRD header cannot be used ({error}); write it again.") from error


def _space(encoding: ElementTree.Element, name: str) -> Space:
    sides = [_number(encoding, f"{name}/matrixSize/{axis}") for axis in "xyz"]
    lengths = [_number(encoding, f"{name}/fieldOfView_mm/{axis}") for axis in "xyz"]
    if not all(0 < side < 2**16 for side in sides) or not all(0 < length < 1e6 for length in lengths):
        raise ValueError(f"{name} has the matrix {sides} and the field of view {lengths}")
    return Space((int(sides[0]), int(sides[1]), int(sides[2])), (lengths[0], lengths[1], lengths[2]))


def _timing(root: ElementTree.Element) -> dict[str, float]:
    names = dict(zip(Timing._fields, ("TR", "TE", "flipAngle_deg"), strict=True))
    found = {key: _text(root, f"sequenceParameters/{name}") for key, name in names.items()}
    return {key: float(text) for key, text in found.items() if text is not None}


def _text(element: ElementTree.Element, path: str) -> str | None:
    return element.findtext(_steps(path))


def _steps(path: str) -> str:
    return "/".join(f"{NAMESPACE}{step}" for step in path.split("/"))


def _number(element: ElementTree.Element, path: str) -> float:
    text = _text(element, path)
    if text is None:
        raise ValueError(f"no {path}")
    return float(text)


def _whole(element: ElementTree.Element, path: str) -> int | None:
    text = _text(element, path)
    return None if text is None else int(text)
