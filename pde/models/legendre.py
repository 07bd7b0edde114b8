"""The Legendre part of the spherical harmonic transform: grids of latitudes, their quadrature, normalised functions."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

Latitudes = Literal["legendre-gauss", "equiangular"]
"""Grids as torch-harmonics names them: the zeros of a Legendre polynomial, or equal steps from pole to pole."""


def quadrature(latitudes: Latitudes, n: int) -> tuple[Tensor, Tensor]:
    """Colatitudes from north to south and the weights of the integral over cos(colatitude); their sum is 2.

    >>> theta, weights = quadrature("legendre-gauss", 8)
    >>> round(float((weights * torch.cos(theta) ** 2).sum()), 12)  # the integral of x^2 from -1 to 1
    0.666666666667
    """
    if latitudes == "legendre-gauss":
        x, weights = np.polynomial.legendre.leggauss(n)
        return torch.from_numpy(np.arccos(x[::-1].copy())), torch.from_numpy(weights[::-1].copy())
    theta = torch.linspace(0, torch.pi, n, dtype=torch.float64)
    # Clenshaw and Curtis: the integral of the cosine series that passes through the points.
    j = torch.arange(n, dtype=torch.float64)
    k = torch.arange(1, (n - 1) // 2 + 1, dtype=torch.float64)
    b = 2 - (2 * k == n - 1).double()
    series = (b / (4 * k**2 - 1) * torch.cos(2 * torch.pi * k * j[:, None] / (n - 1))).sum(1)
    inner = 2 - ((j == 0) | (j == n - 1)).double()
    return theta, inner / (n - 1) * (1 - series)


def legendre_functions(order: int, count: int, theta: Tensor) -> Tensor:
    """P[l, a], l = order ... order + count - 1, at the colatitudes theta[a], with integral P^2 d(cos theta) = 1.

        P[m, m]   = (-1)^m sqrt((2m + 1)!! / 2 (2m)!!) sin(theta)^m
        P[l, m]   = a_l (cos(theta) P[l-1, m] - b_l P[l-2, m])

    with a_l^2 = (4 l^2 - 1) / (l^2 - m^2) and b_l = 1 / a_(l-1); stable upwards in l.
    """
    x, s = torch.cos(theta), torch.sin(theta)
    start = torch.full_like(x, 0.5**0.5)
    for m in range(1, order + 1):
        start = -start * s * ((2 * m + 1) / (2 * m)) ** 0.5
    functions = [torch.zeros_like(x), start]
    step = float("inf")  # a_m: the function below the first one is absent
    for l in range(order + 1, order + count):
        before, step = step, ((4 * l * l - 1) / (l * l - order * order)) ** 0.5
        functions.append(step * (x * functions[-1] - functions[-2] / before))
    return torch.stack(functions[1:])
