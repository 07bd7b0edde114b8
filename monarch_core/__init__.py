"""Monarch matrices: trainable linear operators made of two block-diagonal factors and a fixed permutation."""

from .butterfly import butterfly
from .convolution import circulant, convolution, toeplitz
from .factorization import factorize
from .fixed import Permutation, RealPart, Resize, Stride
from .fourier import dft, hartley
from .grid import GridMonarch, grid_dct, grid_dft, grid_dst, grid_spherical
from .linear import MonarchLinear, param_groups
from .linear_operator import LinearOperator, Product
from .operator import Monarch
from .products import hierarchy, m_star_m, mm_star
from .separable import Separable, dctn, dft2, dftn, dstn
from .structured import acdc, afdf, fastfood, hadamard, hd3, identity, kronecker
from .surgery import densify, monarchize
from .trigonometric import dct, dst

__all__ = [
    "GridMonarch",
    "LinearOperator",
    "Monarch",
    "MonarchLinear",
    "Permutation",
    "Product",
    "RealPart",
    "Resize",
    "Separable",
    "Stride",
    "acdc",
    "afdf",
    "butterfly",
    "circulant",
    "convolution",
    "dct",
    "dctn",
    "densify",
    "dft",
    "dft2",
    "dftn",
    "dst",
    "dstn",
    "factorize",
    "fastfood",
    "grid_dct",
    "grid_dft",
    "grid_dst",
    "grid_spherical",
    "hadamard",
    "hartley",
    "hd3",
    "hierarchy",
    "identity",
    "kronecker",
    "m_star_m",
    "mm_star",
    "monarchize",
    "param_groups",
    "toeplitz",
]
