"""Shallow water on the rotating sphere: torch-harmonics' solver, many samples at once, with Runge-Kutta steps.

    d zeta/dt  = -div((zeta + f) u)
    d delta/dt =  curl((zeta + f) u) - laplacian(phi + |u|²/2)
    d phi/dt   = -div(phi u)

for vorticity zeta, divergence delta and geopotential phi, f = 2 Omega sin(latitude), as spherical harmonic
coefficients. The transforms, the constants and the hyperdiffusion of vorticity and divergence (e-folding in two hours
at the last degree, with the eighth power of the degree below) are those of torch_harmonics.examples.ShallowWaterSolver.
Its time stepping begins each call with a forward Euler step and takes one sample; here all four stages of the
classical Runge-Kutta method are exact to order four from any state, and take a batch.

On a Legendre-Gauss grid of n latitudes the quadrature is exact up to degree 2 n - 1, so that products of two fields
of degree L come back without aliasing if 3 L <= 2 n - 1: degree 42 for 64 latitudes, the T42 of atmospheric models.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from lab.errors import UserError


class ShallowWater:
    """Solver for states [sample, (geopotential, vorticity, divergence), degree, order] in SI units.

    Arguments:
        latitudes, longitudes: the Legendre-Gauss grid.
        dt: time step in seconds.
        degrees: number of degrees kept; by default what the grid transforms without aliasing.
    """

    def __init__(
        self,
        latitudes: int,
        longitudes: int,
        dt: float,
        degrees: int | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        kept = alias_free_degrees(latitudes) if degrees is None else degrees
        make = import_solver()
        self.base = make(latitudes, longitudes, dt, lmax=kept, mmax=kept, grid="legendre-gauss").to(dtype)
        self.dt, self.degrees = dt, kept

    def to_grid(self, state: Tensor) -> Tensor:
        """[..., field, degree, order] to [..., field, latitude, longitude], north first."""
        return self.base.spec2grid(state)

    def without_dimension(self, state: Tensor) -> Tensor:
        """On the grid: (phi - g H) / (g 120 m), and vorticity and divergence times radius / sqrt(g H)."""
        base, grid = self.base, self.to_grid(state)
        rest = base.gravity * base.havg
        height = (grid[:, :1] - rest) / (base.gravity * base.hamp)
        return torch.cat((height, grid[:, 1:] * base.radius / rest.sqrt()), dim=1)

    def tendency(self, state: Tensor) -> Tensor:
        """d state / dt without hyperdiffusion."""
        base = self.base
        grid = base.spec2grid(state)
        phi, zeta = grid[:, :1], grid[:, 1:2]
        wind = base.getuv(state[:, 1:])
        turned = base.vrtdivspec(wind * (zeta + base.coriolis))
        carried = base.vrtdivspec(wind * phi)
        head = base.lap * base.grid2spec(phi[:, 0] + 0.5 * wind.square().sum(1))
        return torch.stack((-carried[:, 1], -turned[:, 1], turned[:, 0] - head), dim=1)

    def step(self, state: Tensor) -> Tensor:
        """One step: Runge-Kutta of order four, then hyperdiffusion."""
        dt = self.dt
        k1 = self.tendency(state)
        k2 = self.tendency(state + dt / 2 * k1)
        k3 = self.tendency(state + dt / 2 * k2)
        k4 = self.tendency(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        state[:, 1:] *= self.base.hyperdiff
        return state

    def integrate(self, state: Tensor, steps: int) -> Tensor:
        """Advance by some steps."""
        for _ in range(steps):
            state = self.step(state)
        return state

    def frames(self, state: Tensor, steps: int, count: int) -> Iterator[Tensor]:
        """The state now and after every `steps` steps, `count` in all."""
        yield state
        for _ in range(1, count):
            state = self.integrate(state, steps)
            yield state


def alias_free_degrees(latitudes: int) -> int:
    """Degrees 0, ..., L kept on a Legendre-Gauss grid: L + 1 with 3 L <= 2 n - 1.

    >>> alias_free_degrees(64)
    43
    """
    return (2 * latitudes - 1) // 3 + 1


def import_solver() -> Any:
    """torch_harmonics.examples.ShallowWaterSolver, or one sentence on how to get it."""
    try:
        from torch_harmonics.examples import ShallowWaterSolver
    except ImportError as error:
        raise UserError(
            "shallow water on the sphere needs torch-harmonics, which is not installed; "
            "pip install 'monarch-science[sphere]', or 'torch-harmonics>=0.8,<0.9'."
        ) from error
    return ShallowWaterSolver
