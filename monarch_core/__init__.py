"""Monarch matrices: trainable linear operators made of two block-diagonal factors and a fixed permutation."""

from .adapter import MonarchAdapter, attach_adapter, load_adapter, merge_adapter, save_adapter
from .attention import MonarchAttention
from .conv import MonarchConv1d, MonarchConv2d
from .conversion.convert import densify, monarchize
from .conversion.report import ConversionReport, LayerReport
from .conversion.saving import load_converted, save_converted, structure
from .experts import MonarchExperts
from .factorization import MMStar, factorize
from .families.butterfly import butterfly
from .families.convolution import circulant, convolution, toeplitz
from .families.diagonals import acdc, afdf, fastfood, hadamard, hd3, identity, kronecker
from .families.products import hierarchy, m_star_m, mm_star
from .linear import MonarchLinear, param_groups
from .linear_operator import Combination, LinearOperator, Product, RealPart
from .monarch import Monarch
from .pairs import real_arithmetic
from .projection import ProjectionReport, project, projection_report
from .real_form import in_pairs
from .reordering import Permutation, Resize, Stride
from .transforms.axis import AxisAnalysis, AxisSynthesis, AxisTransform, Transform
from .transforms.fourier import dft, hartley
from .transforms.grid import GridMonarch, grid_dct, grid_dft, grid_dst, grid_spherical
from .transforms.plane import PlaneAnalysis, PlaneSynthesis, PlaneTransform, shear
from .transforms.separable import Separable, dctn, dft2, dftn, dstn
from .transforms.sphere import SphereTransform
from .transforms.starts import Start, find_start, register_start, start_names
from .transforms.trigonometric import dct, dst

__version__ = "0.1.0"

__all__ = [
    "AxisAnalysis",
    "AxisSynthesis",
    "AxisTransform",
    "Combination",
    "ConversionReport",
    "GridMonarch",
    "LayerReport",
    "LinearOperator",
    "MMStar",
    "Monarch",
    "MonarchAdapter",
    "MonarchAttention",
    "MonarchConv1d",
    "MonarchConv2d",
    "MonarchExperts",
    "MonarchLinear",
    "Permutation",
    "PlaneAnalysis",
    "PlaneSynthesis",
    "PlaneTransform",
    "Product",
    "ProjectionReport",
    "RealPart",
    "Resize",
    "Separable",
    "SphereTransform",
    "Start",
    "Stride",
    "Transform",
    "acdc",
    "afdf",
    "attach_adapter",
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
    "in_pairs",
    "kronecker",
    "load_adapter",
    "load_converted",
    "m_star_m",
    "merge_adapter",
    "mm_star",
    "monarchize",
    "param_groups",
    "project",
    "projection_report",
    "real_arithmetic",
    "register_start",
    "save_adapter",
    "save_converted",
    "shear",
    "start_names",
    "structure",
    "toeplitz",
]
