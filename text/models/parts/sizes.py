"""The sizes of the models."""

from typing import NamedTuple

from lab.errors import UserError


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


def check_blocks(size: str, blocks: int) -> None:
    """Refuse more blocks than the matrices of a size have rows."""
    width = SIZES[size].width
    if blocks > width:
        raise UserError(f"--blocks must be at most {width}, the width of --size {size}, not {blocks}.")
