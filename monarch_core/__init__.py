"""Monarch matrices: trainable linear operators made of two block-diagonal factors and a fixed permutation."""

from .linear_operator import LinearOperator, Product
from .operator import Monarch

__all__ = ["LinearOperator", "Monarch", "Product"]
