"""How many points a grid has: one number for a square, or (rows, columns)."""

from collections.abc import Sequence

Resolution = int | Sequence[int]


def sides(resolution: Resolution) -> tuple[int, int]:
    """Rows and columns.

    >>> sides(64), sides((64, 128))
    ((64, 64), (64, 128))
    """
    if isinstance(resolution, int):
        return resolution, resolution
    rows, columns = resolution
    return rows, columns


def shown(resolution: Resolution) -> str:
    """As a person writes it.

    >>> shown((64, 128))
    '64 x 128'
    """
    return " x ".join(str(side) for side in sides(resolution))
