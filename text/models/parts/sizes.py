"""The sizes of the models."""

from typing import NamedTuple


class Size(NamedTuple):
    """Width of the residual stream, number of blocks, heads of each attention."""

    width: int
    depth: int
    heads: int


SIZES = {
    "tiny": Size(64, 2, 2),  # for trying things out
    # Two blocks of GPT-2 small: its speeds carry over, and it trains in minutes on one core.
    "mini": Size(768, 2, 12),
    "small": Size(768, 12, 12),
    "medium": Size(1024, 24, 16),
}
