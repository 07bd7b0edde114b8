"""What of k-space was sampled: found from the data, said in words."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Grid = tuple[int, int]

FULL = 1.3
"""Accelerations up to this are called full: an ellipse in a full rectangle has 4 / pi = 1.27."""
ENOUGH = 24
"""Points along an axis beyond which a calibration region need not be larger."""


@dataclass(frozen=True)
class Sampling:
    """Which points of the stored grid were sampled, bool (ky, kz)."""

    mask: Mask

    @classmethod
    def of(cls, kspace: np.ndarray) -> "Sampling":
        """That of k-space (coils, ky, kz): wherever any coil is not zero."""
        return cls(np.any(kspace != 0, axis=0, keepdims=True)[0])

    @property
    def acquired_grid(self) -> Grid:
        """The smallest rectangle (ky, kz) around the centre that holds all that was sampled; the rest is padding.

        Lines missing at an end count as skipped, not as padding, if there are no more of them than are skipped between.

        >>> mask = np.zeros((8, 6), bool)
        >>> mask[2:6, ::2] = True
        >>> Sampling(mask).acquired_grid
        (4, 6)
        """
        sides = []
        for axis in (1, 0):
            lines, n = np.flatnonzero(self.mask.any(axis)), self.mask.shape[1 - axis]
            if not len(lines):
                sides.append(n)
                continue
            widest = int(np.diff(lines).max(initial=1))
            first = 0 if lines[0] < widest else int(lines[0])
            last = n - 1 if n - 1 - lines[-1] < widest else int(lines[-1])
            sides.append(min(n, max(2 * (n // 2 - first), 2 * (last - n // 2) + 1)))
        return sides[0], sides[1]

    @property
    def acceleration(self) -> float:
        """Points of the acquired grid per point sampled."""
        ky, kz = self.acquired_grid
        return ky * kz / max(int(self.mask.sum()), 1)

    @property
    def undersampled(self) -> bool:
        """Whether so much is missing that there is something to reconstruct."""
        return self.acceleration > FULL

    @property
    def calibration(self) -> Grid:
        """The largest rectangle (ky, kz) around the centre in which everything was sampled.

        Longer than 24 x 24 counts only among regions that are equally good up to there.
        """
        rows, n = [_centred_run(line) for line in self.mask], len(self.mask)
        best, found, width = (0, 0), (0, 0), self.mask.shape[1]
        for height in range(1, n + 1):
            start = n // 2 - height // 2
            width = min(width, rows[start], rows[start + height - 1])
            score = min(height, ENOUGH) * min(width, ENOUGH), height * width
            if score > best:
                best, found = score, (height, width)
        return found

    def __str__(self) -> str:
        if not self.mask.any():
            return "empty"
        ky, kz = self.acquired_grid
        if not self.undersampled:
            return f"fully sampled on {ky} x {kz}"
        cy, cz = self.calibration
        there = f"calibration region {cy} x {cz}" if cy * cz else "no calibration region"
        return f"undersampled, acceleration {self.acceleration:.2f} on {ky} x {kz}, {there}"


def _centred_run(line: Mask) -> int:
    """How long the longest interval around the centre is in which everything was sampled; see `sense.centre`."""
    n = len(line)
    length = 0
    while length < n and line[n // 2 - (length + 1) // 2 : n // 2 - (length + 1) // 2 + length + 1].all():
        length += 1
    return length
