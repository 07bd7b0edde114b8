"""The Navier-Stokes equations of the FNO benchmark, pseudo-spectral in space and of order four in time.

On the unit torus, for the vorticity w and the velocity (u, v) of an incompressible fluid,

    dw/dt + u dw/dx + v dw/dy = nu (d²w/dx² + d²w/dy²) + f,
    u = d(psi)/dy,   v = -d(psi)/dx,   -(d²psi/dx² + d²psi/dy²) = w.

Space: products are formed on an N x N grid and cut off at the 2/3 rule, so they are free of aliasing. The
advection term is written with two products instead of four (Basdevant 1983),

    u dw/dx + v dw/dy = (d²/dx² - d²/dy²)(u v) + d²/dxdy (v² - u²),

which takes four real FFTs. Time: Runge-Kutta of order four with the viscosity in an integrating factor, the
step following the CFL limit of each flow.

A sample's numbers do not depend on its batch mates, bit for bit on a CPU with one thread: steps are chosen
per sample, and all arithmetic on the modes is by separate products and sums with real or imaginary factors,
each rounded once however a kernel splits the work (a fused or complex product would not be).
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import torch
from torch import Tensor

CFL = 1.0
"""Largest dt max(|u| + |v|) N; with RK4 and the 2/3 rule the limit of stability is 1.35."""

HEADROOM = 1.15
"""The flow may accelerate by this factor over an interval before the interval is done again."""

FEWEST_STEPS, MOST_STEPS = 8, 8192
"""Steps per unit time: fewer lose accuracy where the flow is slow, more mean that it has blown up."""


def fno_forcing(x: Tensor, y: Tensor) -> Tensor:
    """f(x, y) = 0.1 (sin 2 pi (x + y) + cos 2 pi (x + y))."""
    phase = 2 * math.pi * (x + y)
    return 0.1 * (torch.sin(phase) + torch.cos(phase))


class NavierStokes:
    """The flow of viscosity `nu` on a `grid` x `grid` mesh of the unit torus, for a batch of fields.

    A field is w[sample, x, y] with x, y = 0, 1/N, 2/N, ... Inside, it is kept as modes[sample, ky, kx]: the
    half spectrum ky = 0 .. K, and kx in FFT order, K = (N - 1) // 3.

    >>> flow = NavierStokes(nu=0.01, grid=16, forcing=None)
    >>> x = torch.arange(16, dtype=torch.float64) / 16
    >>> w = torch.sin(2 * math.pi * x)[:, None].expand(16, 16)  # a shear flow: only viscosity acts
    >>> decayed = flow.solve(w[None], final_time=1)[0, :, :, 0]
    >>> torch.allclose(decayed, math.exp(-0.01 * 4 * math.pi**2) * w, rtol=1e-12)
    True
    """

    def __init__(
        self,
        nu: float,
        grid: int,
        *,
        forcing: Callable[[Tensor, Tensor], Tensor] | None = fno_forcing,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        self.nu, self.grid, self.dtype, self.device = nu, grid, dtype, torch.device(device)
        self.cutoff = (grid - 1) // 3
        ky = 2 * math.pi * torch.arange(self.cutoff + 1, dtype=torch.float64)[:, None]
        kx = 2 * math.pi * grid * torch.fft.fftfreq(grid, dtype=torch.float64)[None, :]
        kept = (kx.abs() < 2 * math.pi * (self.cutoff + 0.5)).double().expand(len(ky), grid)
        self._laplacian = -(kx**2 + ky**2)
        self._kept = self._table(kept)
        inverse = kept / -self._laplacian.clamp(max=-1.0)  # the mean mode has no velocity: kx = ky = 0 there
        self._to_velocity = torch.stack((self._table(1j * ky * inverse), self._table(-1j * kx * inverse)))
        self._from_uv = self._table((kx**2 - ky**2) * kept)
        self._from_vv_uu = self._table(kx * ky * kept)
        points = torch.arange(grid, dtype=torch.float64) / grid
        self._force = None
        if forcing is not None:
            values = forcing(points[:, None], points[None, :]).expand(grid, grid)
            self._force = self.to_modes(values[None].to(self.device, dtype))
        self._decay = lru_cache(maxsize=64)(self._decay_over)

    def _table(self, values: Tensor) -> Tensor:
        """A table of factors as [1, ky, kx] on the device; real ones get a last axis for the two parts."""
        if values.is_complex():
            return values.to(self.device, torch.complex64 if self.dtype == torch.float32 else values.dtype)[
                None
            ]
        return values.to(self.device, self.dtype)[None, ..., None].expand(-1, -1, -1, 2).contiguous()

    def to_modes(self, field: Tensor) -> Tensor:
        """w[..., x, y] to its modes below the cut-off."""
        half = torch.fft.rfft(field, dim=-1)[..., : self.cutoff + 1]
        modes = torch.fft.fft(half.transpose(-1, -2), dim=-1)
        return _times(self._kept, modes)

    def to_field(self, modes: Tensor) -> Tensor:
        """Modes to w[..., x, y]."""
        half = torch.fft.ifft(modes, dim=-1).transpose(-1, -2)
        return torch.fft.irfft(half, n=self.grid, dim=-1)

    def velocity(self, modes: Tensor) -> Tensor:
        """(u, v) on the grid, stacked on a new first axis."""
        return self.to_field(self._to_velocity * modes)

    def speed(self, modes: Tensor) -> Tensor:
        """max(|u| + |v|) over the grid, for each sample."""
        return self.velocity(modes).abs().sum(0).amax((-1, -2))

    def tendency(self, modes: Tensor) -> Tensor:
        """Modes of f - (u dw/dx + v dw/dy), the part of dw/dt that is not viscosity."""
        u, v = self.velocity(modes)
        products = torch.stack((u * v, (v - u) * (v + u)))
        uv, vv_uu = torch.fft.fft(
            torch.fft.rfft(products, dim=-1)[..., : self.cutoff + 1].transpose(-1, -2), dim=-1
        )
        total = _times(self._from_uv, uv) + _times(self._from_vv_uu, vv_uu)
        return total if self._force is None else total + self._force

    def _decay_over(self, dt: float) -> Tensor:
        return self._table(torch.exp(self.nu * self._laplacian * dt))

    def step(self, modes: Tensor, dt: float) -> Tensor:
        """One step of integrating-factor Runge-Kutta of order four."""
        half, whole = self._decay(dt / 2), self._decay(dt)
        w_half, w_whole = _times(half, modes), _times(whole, modes)
        k1 = self.tendency(modes)
        k2 = self.tendency(w_half + _times(half, k1).mul_(dt / 2))
        k3 = self.tendency(w_half + k2 * (dt / 2))
        k4 = self.tendency(w_whole + _times(half, k3).mul_(dt))
        middle = _times(half, k2.add_(k3)).mul_(2)
        return w_whole.add_(_times(whole, k1).add_(middle).add_(k4).mul_(dt / 6))

    def integrate(self, modes: Tensor, duration: float, steps: int) -> Tensor:
        """Advance by `duration` in `steps` equal steps."""
        for _ in range(steps):
            modes = self.step(modes, duration / steps)
        return modes

    def advance(self, modes: Tensor) -> Tensor:
        """Advance by one unit of time, each sample in as many steps as its own speed asks for.

        The count is chosen from the speed at the start, with headroom, and checked against the speed at the
        end; a sample that outran it is done again with more steps.
        """
        result = torch.empty_like(modes)
        counts = {i: self._steps(HEADROOM * speed) for i, speed in enumerate(self.speed(modes).tolist())}
        while counts:
            steps = min(counts.values())
            if steps > MOST_STEPS:
                raise FloatingPointError(f"the flow blew up on the {self.grid} x {self.grid} grid")
            group = [i for i, count in counts.items() if count == steps]
            result[group] = self.integrate(modes[group], 1.0, steps)
            for i, speed in zip(group, self.speed(result[group]).tolist(), strict=True):
                needed = self._steps(speed)
                if needed <= steps:
                    del counts[i]
                else:
                    counts[i] = min(needed, 2 * steps)  # the speed of an unstable run says little
        return result

    def _steps(self, speed: float) -> int:
        """The smallest of 8, 10, 12, 14, 16, 20, ... that respects the CFL limit over a unit of time."""
        rate = speed * self.grid / CFL
        if not rate <= MOST_STEPS:
            return 2 * MOST_STEPS
        octave, quarter = divmod(max(0, math.ceil(4 * math.log2(max(rate, 1) / FEWEST_STEPS) - 1e-9)), 4)
        return 2**octave * math.ceil(FEWEST_STEPS * 2 ** (quarter / 4))

    def frames(self, initial: Tensor, final_time: int) -> Iterator[Tensor]:
        """The fields w[sample, x, y] at t = 1, 2, ..., `final_time`, from w[sample, x, y] at t = 0."""
        modes = self.to_modes(initial.to(self.device, self.dtype))
        for _ in range(final_time):
            modes = self.advance(modes)
            yield self.to_field(modes)

    def solve(self, initial: Tensor, final_time: int) -> Tensor:
        """All frames as w[sample, x, y, t]."""
        return torch.stack(list(self.frames(initial, final_time)), dim=-1)


def _times(table: Tensor, modes: Tensor) -> Tensor:
    """A real table times complex modes, part by part."""
    return torch.view_as_complex(table * torch.view_as_real(modes))
