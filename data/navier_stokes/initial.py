"""Initial vorticity: the Gaussian random field of the FNO benchmark.

    w(x) = c * sum over k of (4 pi² |k|² + tau²)^(-alpha/2) Re[z_k exp(2 pi i k . x)],   z_k = N(0,1) + i N(0,1),

with alpha = 2.5, tau = 7 and no mean mode. Three values of c for "the same" field are in public use:

    sqrt(2) sigma   standard deviation 0.262   the FNO code until June 2022, from which the released data came
    sigma           standard deviation 0.185   the FNO code since (torch.randn of a complex type has variance 1)
    sqrt(sigma)     standard deviation 0.043   the covariance sigma (-laplacian + tau²)^(-alpha) of the paper

where sigma = tau^1.5.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

ALPHA, TAU = 2.5, 7.0
SIGMA = TAU ** (0.5 * (2 * ALPHA - 2))
PUBLIC_AMPLITUDES = {0.262: math.sqrt(2) * SIGMA, 0.185: SIGMA, 0.043: math.sqrt(SIGMA)}

Field = npt.NDArray[np.float64]


def initial_field(grid: int, seed: int, sample: int, std: float = 0.262) -> Field:
    """Sample number `sample` of the field on a `grid` x `grid` mesh, w[x, y].

    A sample depends on `seed` and `sample` alone, and a finer grid adds modes to the same field: its noise is
    drawn shell by shell, from the slowest mode outwards.

    >>> coarse, fine = initial_field(32, 0, 5), initial_field(128, 0, 5)
    >>> bool(np.abs(coarse - fine[::4, ::4]).max() < 0.05 * np.abs(fine).max())
    True
    """
    kx, ky = _modes_by_shell(grid)
    noise = np.random.default_rng([seed, sample]).standard_normal((len(kx), 2))
    decay = (4 * math.pi**2 * (kx**2 + ky**2) + TAU**2) ** (-ALPHA / 2)
    coefficients = np.zeros((grid, grid), dtype=np.complex128)
    coefficients[kx, ky] = amplitude(std) * decay * (noise[:, 0] + 1j * noise[:, 1])
    return np.fft.ifft2(coefficients, norm="forward").real


def amplitude(std: float) -> float:
    """The factor c for a standard deviation: exact for the three public ones, in proportion for any other."""
    return PUBLIC_AMPLITUDES.get(std, std / 0.262 * PUBLIC_AMPLITUDES[0.262])


@lru_cache(maxsize=2)
def _modes_by_shell(grid: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All (kx, ky) but (0, 0) with |kx|, |ky| < grid / 2, in the order of max(|kx|, |ky|)."""
    one_axis = np.arange(-((grid - 1) // 2), (grid - 1) // 2 + 1)
    kx, ky = (axis.ravel() for axis in np.meshgrid(one_axis, one_axis, indexing="ij"))
    order = np.lexsort((ky, kx, np.maximum(abs(kx), abs(ky))))[1:]
    return kx[order], ky[order]
