"""What fastMRI's ISMRMRD header says about the grid: what was acquired of it, and the voxels' size."""

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from lab.errors import UserError

ISMRMRD = {"i": "http://www.ismrm.org/ISMRMRD"}


@dataclass(frozen=True)
class Header:
    """The encoded grid of a fastMRI file."""

    acquired_lines: tuple[int, int]
    """First and one past the last phase-encoding line that was acquired; the rest is zero-padding."""
    voxel_spacing: tuple[float, float, float]
    """Millimetres: (slice thickness, along H, along W)."""

    def centred_lines(self, num_lines: int) -> int:
        """How many lines the smallest symmetric interval around the centre has that holds the acquired ones.

        >>> Header((2, 16), (1.0, 1.0, 1.0)).centred_lines(16)
        16
        >>> Header((3, 13), (1.0, 1.0, 1.0)).centred_lines(16)
        10
        """
        first, last = self.acquired_lines
        return min(num_lines, 2 * max(num_lines // 2 - first, last - num_lines // 2))


def parse_header(xml: bytes | str, path: Path) -> Header:
    """Read the header of a file; `path` is named when something is missing."""
    try:
        encoding = ElementTree.fromstring(xml).find("i:encoding", ISMRMRD)
        assert encoding is not None
        num_lines = int(_number(encoding, "i:encodedSpace/i:matrixSize/i:y"))
        limits = "i:encodingLimits/i:kspace_encoding_step_1"
        first = num_lines // 2 - int(_number(encoding, f"{limits}/i:center"))
        last = first + int(_number(encoding, f"{limits}/i:maximum")) + 1
        x, y, z = (
            _number(encoding, f"i:encodedSpace/i:fieldOfView_mm/i:{axis}")
            / _number(encoding, f"i:encodedSpace/i:matrixSize/i:{axis}")
            for axis in "xyz"
        )
    except (ElementTree.ParseError, AssertionError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise UserError(f"{path}: 'ismrmrd_header' is not as in fastMRI ({error}).") from error
    return Header((max(first, 0), last), (z, x, y))


def _number(element: ElementTree.Element, path: str) -> float:
    text = element.findtext(path, namespaces=ISMRMRD)
    if text is None:
        raise ValueError(f"no {path.replace('i:', '')}")
    return float(text)
