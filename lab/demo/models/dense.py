"""A linear map without structure."""

from torch import nn


class DenseMap(nn.Linear):
    """y = W x with a dense square matrix W."""

    def __init__(self, size: int) -> None:
        super().__init__(size, size, bias=False)
