"""Maps of T2 from the two echoes of qDESS: the ratio of the echoes, inverted.

With repetition time, time of the first echo, flip angle and T1 given, the ratio of the echoes grows with T2 alone
(`data.knee.tissue.qdess_echoes` has both signals in closed form). It is tabulated and read backwards. T1 matters
little: 200 ms too much or too little changes T2 of cartilage by 2 or 3 per cent.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.knee.tissue import qdess_echoes
from data.scans.scan import Scan, Segmentation, Timing
from lab.errors import UserError
from mri.config import T2Options
from mri.metrics import Complex

SHORTEST_MS, LONGEST_MS, POINTS = 3.0, 500.0, 4000
"""Range and fineness of the table; ratios outside it have no T2."""
FAINTEST = 0.05
"""Voxels whose first echo is below this share of the brightest (99th percentile) have no T2."""
FEWEST = 20
"""Voxels that a tissue needs for its error to be reported."""

Map = NDArray[np.float32]


def t2_map(first: NDArray[Any], second: NDArray[Any], timing: Timing, t1_ms: float = 1200.0) -> Map:
    """T2 in milliseconds from the magnitudes of both echoes, of any shape; NaN where there is too little signal.

    >>> from data.knee.tissue import TIMING
    >>> echoes = qdess_echoes(1200.0, np.array([[30.0, 45.0]]))
    >>> t2_map(*echoes, TIMING).round(2)
    array([[30., 45.]], dtype=float32)
    """
    times = np.geomspace(SHORTEST_MS, LONGEST_MS, POINTS)
    one, two = qdess_echoes(t1_ms, times, timing)
    bright, late = np.abs(first), np.abs(second)
    enough = bright > FAINTEST * np.quantile(bright, 0.99)
    ratio = np.divide(late, bright, out=np.zeros_like(bright), where=enough)
    found = np.interp(ratio, two / one, times, left=np.nan, right=np.nan)
    return np.where(enough, found, np.nan).astype(np.float32)


def t2_of(images: Sequence[Complex], scan: Scan, options: T2Options) -> Map:
    """The map of T2 of a scan from its two echoes."""
    first, second = images
    return t2_map(first, second, timing_of(scan, options), options.t1)


def timing_of(scan: Scan, options: T2Options) -> Timing:
    """Repetition time, echo time and flip angle of the two echoes: as given, otherwise as the file says."""
    if scan.num_echoes != 2:
        raise UserError(
            f"a map of T2 needs the two echoes of qDESS, but {scan.scan_id} has {scan.num_echoes}; leave out --t2."
        )
    given = (options.tr, options.te, options.flip)
    if scan.timing is None and None in given:
        raise UserError(
            f"{scan.path} does not say its repetition time, echo time and flip angle, which a map of T2 needs; add "
            "--tr, --te (milliseconds, of the first echo) and --flip (degrees)."
        )
    said = scan.timing or (0.0, 0.0, 0.0)
    repetition, echo, flip = (old if new is None else new for new, old in zip(given, said, strict=True))
    if not 0 < echo < repetition:
        raise UserError(
            f"{scan.scan_id}: the first echo, at {echo:g} ms, must lie within the repetition time of {repetition:g} ms;"
            " correct --te or --tr."
        )
    return Timing(repetition, echo, flip)


def errors_by_tissue(found: Map, reference: Map, tissues: Segmentation | None) -> list[dict[str, Any]]:
    """How far a map of T2 is from that of full sampling, tissue by tissue, over voxels that have T2 in both.

    Entries: tissue, T2 of the reference (mean), bias (mean difference), error (mean absolute difference), all in
    milliseconds, and the share of the reference's voxels in which T2 was found.
    """
    known = np.isfinite(reference)
    regions = {"everywhere": known}
    if tissues is not None:
        regions = {name: known & (tissues.labels == label) for label, name in tissues.names.items()}
    rows = []
    for name, region in regions.items():
        both = region & np.isfinite(found)
        if both.sum() < FEWEST:
            continue
        difference = (found - reference)[both].astype(np.float64)
        rows.append(
            {
                "tissue": name,
                "t2": float(reference[both].astype(np.float64).mean()),
                "bias": float(difference.mean()),
                "error": float(np.abs(difference).mean()),
                "found": float(both.sum() / region.sum()),
            }
        )
    return rows
