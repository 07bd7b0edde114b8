"""Initial velocity: a smooth random sine series that vanishes on the walls.

    u(x, y) = c * sum over k, l of xi_kl (k² + l² + 9)^(-2) sin(pi k x) sin(pi l y),   xi_kl = N(0, 1),

for each component, k and l from 1 to 16; c sets the spread, the root of the mean over the square of the variance.
"""

import math

import numpy as np
import numpy.typing as npt

MODES = 16


def initial_modes(seed: int, sample: int, std: float = 0.5) -> npt.NDArray[np.float64]:
    """Coefficients [component, k - 1, l - 1] of sample number `sample`.

    >>> initial_modes(0, 5).shape
    (2, 16, 16)
    """
    noise = np.random.default_rng([seed, sample]).standard_normal((2, MODES, MODES))
    k = np.arange(1, MODES + 1.0)
    decay = (k[:, None] ** 2 + k[None, :] ** 2 + 9) ** -2.0
    mean_variance = (decay**2).sum() / 4  # the mean of sin² is 1/2 along each axis
    return noise * decay * (std / math.sqrt(mean_variance))
