"""Viscous Burgers flow between walls, in sine series, with Runge-Kutta of order four.

    du/dt + (u . grad) u = nu laplacian u + f on the unit square,   u = (u, v) = 0 on its walls

Both components are sums of sin(pi k x) sin(pi l y), k, l = 1, ..., K, which vanish on every wall exactly. The product
(u . grad) u is formed at the n x n points ((i + 1/2) / n, (j + 1/2) / n) and projected back by the sine transform of
type 2, with K = 2n/3. Viscosity is an exact integrating factor.

Order in space: on a wall y = 0 the equation gives u_yy = 0, but u_yyyy is not zero, so the sine coefficients of a
solution fall like k^-5, and the error like n^-4 once the layers are resolved.

Largest speeds: each component obeys a maximum principle (without f), so that a step that is stable at the beginning
of a frame stays so.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import torch
from torch import Tensor

STABLE = 2.0
"""Step times the largest rate of advection; the method's limit on the imaginary axis is 2.83."""

Forcing = Callable[[float, Tensor, Tensor], Tensor]


class Burgers:
    """Solver on a grid of `shape` points in the middles of cells; u[..., component, x, y], modes likewise.

    An axis of one point has no walls: nothing changes along it, and the problem is one-dimensional.

    Arguments:
        nu: viscosity.
        shape: points along x and y.
        forcing: f(t, x, y) -> (2, n, m), or none.
    """

    def __init__(
        self,
        nu: float,
        shape: tuple[int, int],
        *,
        forcing: Forcing | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.nu, self.shape, self.dtype, self.forcing = nu, shape, dtype, forcing
        self.points = [middles(n) for n in shape]
        (kx, self._x, self._slope_x), (ky, self._y, self._slope_y) = (
            self._axis(n, points) for n, points in zip(shape, self.points, strict=True)
        )
        self._to_modes = [
            table.mT * (1.0 if n == 1 else 2.0 / n)
            for n, table in zip(shape, (self._x, self._y), strict=True)
        ]
        self._laplacian = (-(kx[:, None] ** 2) - ky[None, :] ** 2).to(dtype)
        self._fastest = kx.max().item(), ky.max().item()
        self._decay = lru_cache(maxsize=2)(self._decay_over)

    def _axis(self, n: int, points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Wave numbers, and the tables of sines and of their slopes at some points."""
        count = 2 * n // 3 if n > 1 else 0
        k = math.pi * torch.arange(min(count, 1), count + 1, dtype=torch.float64)
        angles = points[:, None] * k
        sines = angles.sin() if n > 1 else torch.ones_like(angles)
        return k, sines.to(self.dtype), (k * angles.cos()).to(self.dtype)

    def to_modes(self, field: Tensor) -> Tensor:
        """u[..., x, y] on the grid to its modes."""
        return self._to_modes[0] @ field @ self._to_modes[1].mT

    def to_field(self, modes: Tensor) -> Tensor:
        """Modes to u[..., x, y] on the grid."""
        return self._x @ modes @ self._y.mT

    def at(self, modes: Tensor, points: Tensor) -> Tensor:
        """The series at the points (x_i, x_j) of another grid."""
        x, y = (self._axis(n, points)[1] for n in self.shape)
        return x @ modes @ y.mT

    def padded(self, modes: Tensor) -> Tensor:
        """A shorter or longer series as one of this solver: zeros added, or what does not fit left out."""
        result = torch.zeros(*modes.shape[:-2], *self._laplacian.shape, dtype=self.dtype)
        k, l = (min(have, want) for have, want in zip(modes.shape[-2:], self._laplacian.shape, strict=True))
        result[..., :k, :l] = modes[..., :k, :l]
        return result

    def tendency(self, modes: Tensor, time: float = 0.0) -> Tensor:
        """Modes of f - (u . grad) u, the part of du/dt that is not viscosity."""
        in_y, sloped_in_y = modes @ self._y.mT, modes @ self._slope_y.mT
        field = self._x @ in_y
        change = -(field[0] * (self._slope_x @ in_y) + field[1] * (self._x @ sloped_in_y))
        if self.forcing is not None:
            x, y = self.points
            change = change + self.forcing(time, x[:, None], y[None, :]).to(self.dtype)
        return self.to_modes(change)

    def step(self, modes: Tensor, time: float, dt: float) -> Tensor:
        """One step of integrating-factor Runge-Kutta of order four."""
        half, whole = self._decay(dt / 2), self._decay(dt)
        damped = half * modes
        k1 = self.tendency(modes, time)
        k2 = self.tendency(damped + dt / 2 * half * k1, time + dt / 2)
        k3 = self.tendency(damped + dt / 2 * k2, time + dt / 2)
        k4 = self.tendency(whole * modes + dt * half * k3, time + dt)
        return whole * (modes + dt / 6 * k1) + dt / 3 * half * (k2 + k3) + dt / 6 * k4

    def _decay_over(self, dt: float) -> Tensor:
        return torch.exp(self.nu * dt * self._laplacian)

    def integrate(self, modes: Tensor, duration: float, steps: int, time: float = 0.0) -> Tensor:
        """Advance by `duration` in `steps` equal steps."""
        dt = duration / steps
        for i in range(steps):
            modes = self.step(modes, time + i * dt, dt)
        return modes

    def steps(self, modes: Tensor, duration: float) -> int:
        """Steps that keep the fastest mode stable at the largest speeds of now."""
        u, v = self.to_field(modes).abs().amax((-1, -2)).tolist()
        rate = u * self._fastest[0] + v * self._fastest[1]
        return max(1, math.ceil(duration * rate / STABLE))

    def frames(self, modes: Tensor, interval: float, count: int) -> Iterator[Tensor]:
        """The modes at the times 0, interval, 2 interval, ..., `count` in all."""
        yield modes
        for i in range(1, count):
            modes = self.integrate(modes, interval, self.steps(modes, interval), (i - 1) * interval)
            if not self.to_field(modes).isfinite().all():
                raise FloatingPointError(f"the flow blew up on the {' x '.join(map(str, self.shape))} grid")
            yield modes


def middles(n: int) -> Tensor:
    """The middles of n cells between 0 and 1."""
    return (torch.arange(n, dtype=torch.float64) + 0.5) / n
