"""Monarch matrices: trainable linear operators made of two block-diagonal factors and a fixed permutation."""

from .convert import densify, monarchize
from .factorization import factorize
from .families.butterfly import butterfly
from .families.convolution import circulant, convolution, toeplitz
from .families.diagonals import acdc, afdf, fastfood, hadamard, hd3, identity, kronecker
from .families.products import hierarchy, m_star_m, mm_star
from .linear import MonarchLinear, param_groups
from .linear_operator import LinearOperator, Product, RealPart
from .monarch import Monarch
from .pairs import real_arithmetic
from .reordering import Permutation, Resize, Stride
from .transforms.axis import AxisAnalysis, AxisSynthesis, AxisTransform, Transform
from .transforms.fourier import dft, hartley
from .transforms.grid import GridMonarch, grid_dct, grid_dft, grid_dst, grid_spherical
from .transforms.plane import PlaneAnalysis, PlaneSynthesis, PlaneTransform, shear
from .transforms.separable import Separable, dctn, dft2, dftn, dstn
from .transforms.sphere import SphereTransform
from .transforms.starts import Start, find_start, register_start, start_names
from .transforms.trigonometric import dct, dst

__all__ = [
    "AxisAnalysis",
    "AxisSynthesis",
    "AxisTransform",
    "GridMonarch",
    "LinearOperator",
    "Monarch",
    "MonarchLinear",
    "Permutation",
    "PlaneAnalysis",
    "PlaneSynthesis",
    "PlaneTransform",
    "Product",
    "RealPart",
    "Resize",
    "Separable",
    "SphereTransform",
    "Start",
    "Stride",
    "Transform",
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
    "find_start",
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
    "real_arithmetic",
    "register_start",
    "shear",
    "start_names",
    "toeplitz",
]
