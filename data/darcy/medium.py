"""The random medium of the FNO benchmark: two permeabilities, divided where a Gaussian field changes its sign.

    g(x, y) = sum over k of xi_k (pi² |k|² + 9)^(-1) c_k cos(pi k1 x) cos(pi k2 y),   xi_k = N(0, 1),

a sample of the Gaussian measure of covariance (-laplacian + 9)^(-2) with zero slope at the walls. c_k makes the cosines
orthonormal; the mean mode k = 0 is left out, as in the released code. Only the sign of g matters.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.fft import idctn

Array = npt.NDArray[np.float64]


def gaussian_field(grid: int, seed: int, sample: int) -> Array:
    """Sample number `sample` of g at the middles of `grid` x `grid` cells, g[x, y].

    A sample depends on `seed` and `sample` alone, and a finer grid adds modes to the same field: its noise is
    drawn shell by shell, from the slowest mode outwards.

    >>> coarse, fine = gaussian_field(32, 0, 5), gaussian_field(96, 0, 5)
    >>> bool(np.abs(coarse - fine[1::3, 1::3]).max() < 0.1 * np.abs(fine).max())
    True
    """
    kx, ky = _modes_by_shell(grid)
    noise = np.random.default_rng([seed, sample]).standard_normal(len(kx))
    coefficients = np.zeros((grid, grid))
    coefficients[kx, ky] = noise / (np.pi**2 * (kx**2 + ky**2) + 9)
    return grid * idctn(coefficients, type=2, norm="ortho")


def permeability(grid: int, seed: int, sample: int, high: float = 12.0, low: float = 3.0) -> Array:
    """`high` where the Gaussian field is positive, `low` elsewhere."""
    return np.where(gaussian_field(grid, seed, sample) > 0, high, low)


@lru_cache(maxsize=2)
def _modes_by_shell(grid: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All (kx, ky) but (0, 0) with 0 <= kx, ky < grid, in the order of max(kx, ky)."""
    kx, ky = (axis.ravel() for axis in np.indices((grid, grid)))
    order = np.lexsort((ky, kx, np.maximum(kx, ky)))[1:]
    return kx[order], ky[order]
