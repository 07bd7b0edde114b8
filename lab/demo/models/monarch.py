"""A linear map that is a Monarch matrix."""

from monarch_core import Monarch


class MonarchMap(Monarch):
    """y = M x with a square Monarch matrix M."""

    def __init__(self, size: int, blocks: int | None = None) -> None:
        super().__init__(size, blocks=blocks)
