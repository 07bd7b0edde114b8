"""Spherical harmonics: grids of latitudes, their quadrature, Legendre functions, and the transforms made of them.

A field (latitude, longitude): a Fourier transform along each latitude, then for each order k a Legendre matrix along
the latitudes. The start "sht" keeps for every order the 2m lowest degrees that it has, so that its tables have the
shapes of all other starts; `SphereTransform` keeps the degrees below 2m, as a spherical Fourier neural operator does.
"""

from __future__ import annotations

from typing import cast, get_args

import torch
from torch import Tensor

from ..checks import pair, tensor, whole
from ..pairs import rearranged, traced
from .fourier import Fourier
from .plane import Pair, PlaneTransform
from .starts import Latitudes, Start, Tables, register_start


def quadrature(latitudes: Latitudes, n: int) -> tuple[Tensor, Tensor]:
    """Colatitudes from north to south and the weights of the integral over cos(colatitude); their sum is 2.

    >>> theta, weights = quadrature("legendre-gauss", 8)
    >>> round(float((weights * torch.cos(theta) ** 2).sum()), 12)  # the integral of x^2 from -1 to 1
    0.666666666667
    """
    if latitudes not in get_args(Latitudes):
        raise ValueError(f"latitudes are one of {', '.join(get_args(Latitudes))}; got {latitudes!r}.")
    if latitudes == "legendre-gauss":
        return _gauss(n)
    theta = torch.linspace(0, torch.pi, n, dtype=torch.float64)
    # Clenshaw and Curtis: the integral of the cosine series that passes through the points.
    j = torch.arange(n, dtype=torch.float64)
    k = torch.arange(1, (n - 1) // 2 + 1, dtype=torch.float64)
    b = 2 - (2 * k == n - 1).double()
    series = (b / (4 * k**2 - 1) * torch.cos(2 * torch.pi * k * j[:, None] / (n - 1))).sum(1)
    inner = 2 - ((j == 0) | (j == n - 1)).double()
    return theta, inner / (n - 1) * (1 - series)


def _gauss(n: int) -> tuple[Tensor, Tensor]:
    """Gauss and Legendre: the zeros of P_n, as the eigenvalues of the recurrence, improved by Newton's steps."""
    k = torch.arange(1, n, dtype=torch.float64)
    beside = k / torch.sqrt(4 * k**2 - 1)
    x = torch.linalg.eigvalsh(torch.diag(beside, 1) + torch.diag(beside, -1)).flip(0)
    for _ in range(2):
        value, slope = _legendre_polynomial(n, x)
        x = x - value / slope
    slope = _legendre_polynomial(n, x)[1]
    return torch.arccos(x), 2 / ((1 - x**2) * slope**2)


def _legendre_polynomial(n: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """P_n(x) and its derivative, -1 < x < 1."""
    before, value = torch.zeros_like(x), torch.ones_like(x)
    for l in range(1, n + 1):
        before, value = value, ((2 * l - 1) * x * value - (l - 1) * before) / l
    return value, n * (before - x * value) / (1 - x**2)


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


class Harmonics(Start):
    """The start "sht": along the second axis, for each order k, the degrees k ... k + 2 modes - 1.

    The functions are orthonormal in the mean over the sphere, sum_a w_a P[l, a] P[l', a] = 1 for l = l' with weights of
    mean 1, so that both directions have the size of an orthonormal Fourier matrix and learn at the same pace.
    """

    per_frequency = True
    stays_because = "its harmonics are those of one grid on the sphere"

    def __init__(self, latitudes: Latitudes = "legendre-gauss") -> None:
        self.latitudes = latitudes

    def on_latitudes(self, latitudes: Latitudes) -> Harmonics:
        return type(self)(latitudes)

    def first(self, n: int, out: int, modes: int) -> Tables:
        return Fourier().first(n, out, modes)

    def second(self, n: int, out: int, modes: int, lines: int) -> Tables:
        highest = lines + 2 * modes - 2
        if highest >= min(n, out):
            raise ValueError(
                f"{modes} modes have spherical harmonics up to degree {highest}; "
                f"{min(n, out)} latitudes resolve {min(n, out) - 1}."
            )
        return self._legendre(n, out, [(k, 2 * modes) for k in range(lines)])

    def _legendre(self, n: int, out: int, orders: list[tuple[int, int]]) -> Tables:
        """Forward (k, n, l) with the quadrature, and back (k, l, out), for orders k with so many degrees each.

        Where an order has fewer degrees than the first one, zeros stand before them.
        """
        theta, weights = quadrature(self.latitudes, n)
        there = _functions(orders, theta) * (weights * n / 2)
        back = _functions(orders, quadrature(self.latitudes, out)[0])
        tables = (torch.stack((t, torch.zeros_like(t)), -1) * (2 / n) ** 0.5 for t in (there.mT, back))
        return cast(Tables, tuple(tables))


class Triangle(Harmonics):
    """All harmonics of the degrees l < 2 `modes`, as many orders as degrees; zero where k > l."""

    def second(self, n: int, out: int, modes: int, lines: int) -> Tables:
        return self._legendre(n, out, [(k, 2 * modes - k) for k in range(lines)])


def _functions(orders: list[tuple[int, int]], theta: Tensor) -> Tensor:
    """Legendre functions (k, l, colatitude)."""
    degrees = orders[0][1]
    made = [legendre_functions(order, count, theta) for order, count in orders]
    return torch.stack([torch.cat((f.new_zeros(degrees - len(f), len(theta)), f)) for f in made])


class SphereTransform(PlaneTransform):
    """Harmonics of a sphere by degree, for layers that treat all orders of a degree alike: they commute with rotations.

    (batch, latitude, longitude, channel) to (degree, channel, order and batch, 2), and back.

    >>> sphere = SphereTransform((32, 64), degrees=8)
    >>> sphere.analyse(torch.randn(5, 32, 64, 3)).shape
    torch.Size([8, 3, 40, 2])
    """

    def __init__(
        self,
        grid: Pair,
        degrees: int,
        *,
        latitudes: Latitudes = "legendre-gauss",
        dtype: torch.dtype | None = None,
    ) -> None:
        rows, columns = pair(grid, "the grid (latitudes, longitudes)")
        if whole(degrees, "the number of degrees", least=2) % 2 or degrees > min(rows, columns // 2):
            raise ValueError(
                f"{degrees} degrees need as many latitudes and twice as many longitudes, and an even number."
            )
        super().__init__(
            grid, (degrees // 2, degrees), start=Triangle(latitudes), latitudes=latitudes, dtype=dtype
        )
        self.degrees = degrees

    @property
    def num_modes(self) -> int:
        return self.degrees

    def analyse(self, field: Tensor) -> Tensor:
        modes, degrees = super().analyse(field), self.degrees
        _, channels, batch, _ = modes.shape
        made = rearranged(modes, "klcb", "lckb", k=degrees, l=degrees, c=channels, b=batch)
        return made.flatten(2, 3)

    def synthesise(self, modes: Tensor) -> Tensor:
        degrees = self.degrees
        if not traced() and (
            tensor(modes, "the modes", axes=4).shape[::3] != (degrees, 2) or modes.shape[2] % degrees
        ):
            raise ValueError(
                f"this transform takes modes ({degrees}, channel, {degrees} orders of each field, 2); got shape "
                f"{tuple(modes.shape)}."
            )
        _, channels, both, _ = modes.shape
        batch = both // degrees
        harmonics = rearranged(modes, "lckb", "klcb", k=degrees, l=degrees, c=channels, b=batch)
        return super().synthesise(harmonics.flatten(0, 1))


register_start("sht", Harmonics)
