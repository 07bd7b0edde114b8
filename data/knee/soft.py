"""The soft parts of the knee: outline, muscles, tendons, vessels and nerves, as level functions.

Long parts are tables of sections: rows of (x, y, z, half depth, half width) in mm in the average knee.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.interpolate import PchipInterpolator

from data.knee.shapes import Field, tube

Sections = tuple[tuple[float, float, float, float, float], ...]

MUSCLES: Final[dict[str, Sections]] = {
    "vastus intermedius": (
        (-140, -36, 0, 12, 26), (-95, -34, 0, 10, 24), (-70, -33, 0, 6, 17), (-58, -33, 0, 0.4, 6),
    ),
    "adductor magnus": ((-140, 16, -20, 16, 18), (-80, 14, -20, 9, 10), (-45, 12, -24, 1, 1)),
    "short head of biceps": (
        (-140, 16, 20, 12, 14), (-80, 18, 22, 11, 12), (-40, 24, 30, 7, 8), (-15, 26, 36, 1, 2),
    ),
    "rectus femoris": ((-140, -54, 0, 9, 20), (-110, -52, 0, 6, 15), (-88, -49, 0, 0.5, 6)),
    "vastus medialis": (
        (-140, -18, -36, 30, 20), (-85, -21, -37, 27, 17), (-55, -27, -36, 19, 12),
        (-34, -34, -33, 9, 6), (-22, -37, -31, 0.5, 1),
    ),
    "vastus lateralis": (
        (-140, -16, 37, 30, 20), (-90, -20, 37, 26, 16), (-62, -27, 35, 17, 10),
        (-44, -33, 32, 0.6, 3),
    ),
    "biceps femoris": (
        (-140, 42, 24, 20, 19), (-70, 41, 30, 17, 15), (-25, 36, 37, 11, 9), (5, 28, 40, 4, 3),
        (16, 24, 39, 1, 1),
    ),
    "semimembranosus": (
        (-140, 38, -24, 20, 21), (-70, 40, -25, 19, 18), (-28, 40, -28, 13, 13),
        (-2, 36, -30, 5, 6), (10, 30, -30, 1, 1),
    ),
    "semitendinosus": ((-140, 58, -8, 11, 16), (-80, 59, -16, 7, 10), (-48, 54, -22, 1.5, 2)),
    "sartorius": (
        (-140, 8, -53, 20, 8), (-60, 20, -49, 15, 6), (-10, 23, -46, 11, 4), (30, 8, -40, 2, 1),
    ),
    "gracilis": ((-140, 34, -50, 10, 6), (-70, 37, -47, 6, 5), (-40, 35, -44, 1, 1)),
    "medial gastrocnemius": (
        (-32, 31, -20, 1, 2), (-22, 35, -20, 8, 10), (5, 43, -20, 13, 15), (45, 46, -21, 17, 22),
        (90, 46, -22, 20, 25), (140, 44, -21, 20, 24),
    ),
    "lateral gastrocnemius": (
        (-30, 31, 21, 1, 2), (-20, 35, 21, 7, 10), (5, 43, 20, 12, 14), (45, 47, 21, 15, 20),
        (90, 47, 22, 17, 22), (140, 46, 21, 16, 21),
    ),
    "plantaris": ((-30, 32, 10, 0.5, 0.5), (-12, 35, 9, 4, 4), (15, 36, 5, 3, 4), (38, 36, 0, 0.5, 0.5)),
    "popliteus": (
        (8, 29, 16, 0.5, 4), (20, 28, 4, 5, 18), (45, 22, -4, 8, 19), (70, 16, -8, 4, 12),
        (82, 13, -9, 0.5, 2),
    ),
    "soleus": (
        (22, 34, 27, 0.5, 2), (40, 33, 18, 6, 18), (65, 31, 4, 12, 32), (100, 30, 0, 16, 36),
        (140, 30, 0, 18, 37),
    ),
    "tibialis posterior": ((50, 12, 10, 0.5, 2), (75, 12, 10, 9, 12), (140, 12, 8, 12, 15)),
    "tibialis anterior": (
        (16, -10, 33, 0.5, 1), (40, -13, 28, 11, 10), (80, -15, 24, 17, 16),
        (140, -15, 22, 18, 17),
    ),
    "extensor digitorum": ((18, 4, 41, 0.5, 1), (45, 2, 40, 13, 7), (140, -2, 38, 16, 9)),
    "peroneus": ((24, 18, 44, 0.5, 1), (50, 14, 43, 9, 7), (140, 13, 41, 15, 10)),
}  # fmt: skip

VESSELS: Final[dict[str, Sections]] = {
    "popliteal artery": (
        (-140, 14, -16, 3.4, 3.4), (-70, 22, -7, 3.3, 3.3), (-20, 32, 1, 3.1, 3.1),
        (20, 34.5, 3, 2.9, 2.9), (50, 27, 4, 2.4, 2.4), (140, 18, 2, 1.8, 1.8),
    ),
    "popliteal vein": (
        (-140, 20, -13, 4.3, 4.6), (-70, 28, -4, 4.3, 4.6), (-20, 38.5, 4, 4.0, 4.6),
        (20, 41, 4, 3.4, 3.9), (50, 33, 6, 2.6, 2.9), (140, 22, 4, 1.8, 2.0),
    ),
    "small saphenous vein": (
        (-25, 45, 4, 1.2, 1.2), (0, 55, 3, 1.5, 1.5), (60, 66, 1, 1.6, 1.6),
        (140, 68, 0, 1.6, 1.6),
    ),
    "great saphenous vein": (
        (-140, 18, -60, 1.8, 1.8), (-20, 27, -52, 1.8, 1.8), (50, 8, -46, 1.7, 1.7),
        (140, -2, -42, 1.7, 1.7),
    ),
    "genicular artery": ((-44, 12, -5, 1.0, 1.0), (-36, 24, 0, 1.1, 1.1), (-30, 31, 2, 1.0, 1.0)),
}  # fmt: skip

NERVES: Final[dict[str, Sections]] = {
    "tibial nerve": (
        (-140, 38, 6, 3.4, 3.8), (-60, 41, 6, 3.0, 3.4), (0, 46, 4, 2.5, 3.0),
        (50, 36, 2, 2.2, 2.4), (140, 26, 0, 2, 2),
    ),
    "peroneal nerve": (
        (-70, 42, 14, 2.0, 2.4), (-20, 43, 27, 1.8, 2.2), (15, 32, 41, 1.6, 1.8),
        (30, 22, 43, 1.5, 1.5),
    ),
}  # fmt: skip

TENDONS: Final[dict[str, Sections]] = {
    "semitendinosus": (
        (-55, 54, -21, 1.8, 2.2), (-10, 47, -36, 1.7, 2.0), (25, 24, -41, 1.5, 1.8),
        (45, 2, -30, 1.0, 1.5),
    ),
    "gracilis": ((-45, 35, -44, 1.4, 1.6), (10, 27, -44, 1.4, 1.6), (42, 2, -32, 0.8, 1.2)),
    "semimembranosus": (
        (-40, 36, -29, 1.5, 3.5), (-5, 33, -31, 2.2, 4.0), (10, 27, -30, 1.8, 3.5),
        (16, 24, -28, 0.5, 1.5),
    ),
    "biceps femoris": ((-30, 30, 41, 1.2, 3.0), (5, 26, 41, 2.0, 3.0), (18, 22, 38, 1.0, 2.0)),
    "iliotibial band": (
        (-140, -6, 50, 15, 0.7), (-60, -8, 46, 13, 0.9), (-10, -13, 41.5, 7, 1.3),
        (14, -17, 33, 4, 1.2),
    ),
    "medial collateral": (
        (-28, 3, -40, 6, 1.0), (0, 2, -41, 6, 1.1), (30, -2, -33, 5, 0.9), (55, -4, -22, 4, 0.7),
    ),
    "lateral collateral": ((-22, 6, 40.5, 2.0, 1.6), (0, 13, 42, 1.9, 1.5), (16, 19, 39, 1.8, 1.5)),
}  # fmt: skip

OUTLINE: Final[Sections] = (
    (-140, 2, 0, 68, 64), (-80, 2, 0, 63, 58), (-45, 0, 0, 58, 53), (-15, 0, 0, 54, 50),
    (15, 5, 0, 53, 47.5), (45, 11, 0, 52, 47), (90, 14, 0, 54, 49), (140, 14, 0, 54, 49),
)  # fmt: skip
"""Fascia: the limb without subcutaneous fat and skin."""


Box = tuple[slice, slice, slice]
EVERYWHERE: Final[Box] = (slice(None), slice(None), slice(None))
MARGIN_MM: Final = 2.0


class Rows:
    """Tubes along x, evaluated where the rows of a slab are; y and z carry the subject's deformation."""

    def __init__(self, rows: Field, y: Field, z: Field) -> None:
        self.rows, self.y, self.z = rows, y, z
        self.y_range = y.min(axis=(0, 2)), y.max(axis=(0, 2))
        self.z_range = z.min(axis=(0, 1)), z.max(axis=(0, 1))
        steps = [
            np.abs(np.diff(c)).max() if len(c) > 1 else 1.0 for c in (rows, self.y_range[0], self.z_range[0])
        ]
        self.margin = MARGIN_MM + float(sum(steps))

    def tube(self, sections: Sections, grow: float = 1.0, *, crop: bool = True) -> tuple[Field, Box] | None:
        """The distance to a tube and the box of voxels it was evaluated in; None if the slab misses it.

        Outside the box the tube is farther away than any voxel can feel.
        """
        table = np.asarray(sections, np.float64)
        first, last = table[0, 0], table[-1, 0]
        box_x = _span(self.rows, self.rows, first, last, self.margin)
        if box_x is None:
            return None
        rows = self.rows[box_x]
        sections_at = PchipInterpolator(table[:, 0], table[:, 1:] * (1, 1, grow, grow))
        cy, cz, a, b = sections_at(np.clip(rows, first, last)).T.astype(np.float32)
        box_y = _span(*self.y_range, (cy - a).min(), (cy + a).max(), self.margin) if crop else slice(None)
        box_z = _span(*self.z_range, (cz - b).min(), (cz + b).max(), self.margin) if crop else slice(None)
        if box_y is None or box_z is None:
            return None
        box = (box_x, box_y, box_z)
        cy, cz, a, b = (c[:, None, None] for c in (cy, cz, a, b))
        beyond = np.maximum(first - rows, rows - last).astype(np.float32)[:, None, None]
        return np.maximum(tube(self.y[box], self.z[box], (cy, cz), (a, b)), beyond), box

    def all(self, table: dict[str, Sections], grow: float = 1.0) -> Iterator[tuple[Field, Box]]:
        """Each tube of a table that reaches this slab, with its box."""
        for sections in table.values():
            found = self.tube(sections, grow)
            if found is not None:
                yield found


def _span(low: Field, high: Field, start: float, end: float, margin: float) -> slice | None:
    """The indices whose range of coordinates comes within `margin` of [start, end], and a neighbour each side."""
    near = np.flatnonzero((high >= start - margin) & (low <= end + margin))
    return slice(max(near[0] - 1, 0), min(near[-1] + 2, len(low))) if len(near) else None
