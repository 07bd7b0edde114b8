"""Burgers flow between walls: the solver against Cole and Hopf, a manufactured flow and finite differences."""

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from data.burgers.config import GenerateConfig
from data.burgers.generate import solve_samples
from data.burgers.initial import initial_modes
from data.burgers.solver import Burgers, middles
from lab.errors import UserError
from monarch_core import dst


def cole_hopf(t: float, x: Tensor, nu: float) -> Tensor:
    """u = -2 nu phi_x / phi, phi a solution of the heat equation without flux at the walls, so that u = 0 there."""
    phi, slope = torch.ones_like(x), torch.zeros_like(x)
    for k, amplitude in ((1, 0.8), (2, 0.15)):
        decayed = amplitude * math.exp(-nu * (k * math.pi) ** 2 * t)
        phi = phi + decayed * torch.cos(k * math.pi * x)
        slope = slope - decayed * k * math.pi * torch.sin(k * math.pi * x)
    return -2 * nu * slope / phi


def test_a_flow_along_one_axis_is_that_of_cole_and_hopf() -> None:
    nu, n = 0.1, 64
    solver, x = Burgers(nu, (n, 1)), middles(n)
    start = torch.zeros(2, n, 1, dtype=torch.float64)
    start[0, :, 0] = cole_hopf(0.0, x, nu)
    end = solver.to_field(solver.integrate(solver.to_modes(start), 0.5, 200))
    expected = cole_hopf(0.5, x, nu)
    assert expected.abs().max() < 0.8 * start.abs().max()  # something happened
    assert (end[0, :, 0] - expected).abs().max() < 1e-10
    assert end[1].abs().max() == 0


class Manufactured:
    """A flow with the regularity of real ones at the walls: second derivatives vanish there, the fourth do not."""

    nu = 0.05

    @staticmethod
    def profile(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """z - 2 z³ + z⁴ and its first two derivatives."""
        return z - 2 * z**3 + z**4, 1 - 6 * z**2 + 4 * z**3, -12 * z + 12 * z**2

    def flow(self, t: float, x: Tensor, y: Tensor) -> Tensor:
        (g, _, _), (h, _, _), c = self.profile(x), self.profile(y), math.exp(-t)
        return torch.stack((8 * c * g * h, 6 * (2 - c) * g * torch.sin(2 * math.pi * y)))

    def forcing(self, t: float, x: Tensor, y: Tensor) -> Tensor:
        """du/dt + (u . grad) u - nu laplacian u."""
        (g, g1, g2), (h, h1, h2), c = self.profile(x), self.profile(y), math.exp(-t)
        s, s1 = torch.sin(2 * math.pi * y), 2 * math.pi * torch.cos(2 * math.pi * y)
        u, v = self.flow(t, x, y)
        gain = 6 * (2 - c)
        along_x = u * (8 * c * g1 * h) + v * (8 * c * g * h1)
        along_y = u * (gain * g1 * s) + v * (gain * g * s1)
        viscous = torch.stack((8 * c * (g2 * h + g * h2), gain * (g2 - 4 * math.pi**2 * g) * s))
        return torch.stack((-u, 6 * c * g * s)) + torch.stack((along_x, along_y)) - self.nu * viscous


def test_the_error_in_space_is_of_order_four() -> None:
    made, errors = Manufactured(), []
    for n in (12, 24, 48):
        solver, x = Burgers(made.nu, (n, n), forcing=made.forcing), middles(n)[:, None]
        modes = solver.integrate(solver.to_modes(made.flow(0.0, x, x.T)), 0.5, 150)
        errors.append(float((solver.to_field(modes) - made.flow(0.5, x, x.T)).square().mean().sqrt()))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 3.9) & (orders < 4.6)), orders
    assert errors[-1] < 1e-7


def test_the_error_in_time_is_of_order_four() -> None:
    solver = Burgers(0.02, (24, 24))
    start = solver.padded(torch.from_numpy(initial_modes(0, 0)))
    coarse, middle, fine = (solver.integrate(start, 0.4, steps) for steps in (20, 40, 80))
    order = math.log2(float((coarse - middle).norm() / (middle - fine).norm()))
    assert 3.7 < order < 4.3


def finite_differences(nu: float, modes: npt.NDArray[np.float64], n: int, time: float) -> Tensor:
    """An independent solution: second-order differences at the inner nodes i / n, scipy's Runge-Kutta in time."""
    x = np.arange(1, n) / n
    k = np.arange(1, modes.shape[-1] + 1)
    sines = np.sin(np.pi * x[:, None] * k)
    start = sines @ modes @ sines.T

    def change(t: float, flat: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        w = np.pad(flat.reshape(2, n - 1, n - 1), ((0, 0), (1, 1), (1, 1)))
        inner = w[:, 1:-1, 1:-1]
        slope_x = (w[:, 2:, 1:-1] - w[:, :-2, 1:-1]) * n / 2
        slope_y = (w[:, 1:-1, 2:] - w[:, 1:-1, :-2]) * n / 2
        laplacian = (w[:, 2:, 1:-1] + w[:, :-2, 1:-1] + w[:, 1:-1, 2:] + w[:, 1:-1, :-2] - 4 * inner) * n**2
        return np.asarray(nu * laplacian - inner[0] * slope_x - inner[1] * slope_y).ravel()

    done = solve_ivp(change, (0, time), start.ravel(), rtol=1e-7, atol=1e-9)
    return torch.from_numpy(done.y[:, -1].reshape(2, n - 1, n - 1))


def test_finite_differences_agree() -> None:
    nu, time, modes = 0.03, 0.2, initial_modes(0, 3)[:, :6, :6]
    coarse, fine = (finite_differences(nu, modes, n, time) for n in (32, 64))
    extrapolated = (4 * fine[:, 1::2, 1::2] - coarse) / 3
    solver = Burgers(nu, (48, 48))
    start = solver.padded(torch.from_numpy(modes))
    found = solver.at(solver.integrate(start, time, solver.steps(start, time)), torch.arange(1, 32) / 32.0)
    change = solver.at(start, torch.arange(1, 32) / 32.0) - found
    assert change.norm() > 0.2 * found.norm()
    assert (found - extrapolated).norm() < 1e-3 * found.norm()


def test_the_points_are_those_of_the_sine_transform() -> None:
    """A mode of the solver is one coefficient of monarch_core's sine transform, whose series vanishes on the walls."""
    solver = Burgers(0.01, (12, 12))
    modes = torch.zeros(2, 8, 8, dtype=torch.float64)
    modes[0, 2, 4] = 1.0
    transform = dst(12, dtype=torch.float64)
    found = transform(transform(solver.to_field(modes)).mT).mT
    expected = torch.zeros(2, 12, 12, dtype=torch.float64)
    expected[0, 2, 4] = 12.0**2
    assert torch.allclose(found, expected, atol=1e-10)


def test_neither_component_grows() -> None:
    w = torch.from_numpy(solve_samples(GenerateConfig(resolution=24, grid=48, frames=8).settings, [1]))
    largest = w.abs().amax((0, 1, 2))
    assert torch.all(largest[1:] <= largest[:-1] * (1 + 1e-3))
    assert torch.all(largest[-1] > 0.3 * largest[0])  # and has not died


def test_the_default_grid_is_fine_enough() -> None:
    """At the steepest moment of a steep sample, against one and a half times the grid."""
    sample = 3
    usual, fine = (GenerateConfig(grid=grid, frames=3, interval=0.25).settings for grid in (None, 192))
    found, expected = solve_samples(usual, [sample])[..., -1, :], solve_samples(fine, [sample])[..., -1, :]
    assert np.linalg.norm(found - expected) < 2e-4 * np.linalg.norm(expected)


def test_samples_differ_and_stay_the_same() -> None:
    assert np.array_equal(initial_modes(0, 5), initial_modes(0, 5))
    spread = np.std([initial_modes(0, i)[0, 0, 0] for i in range(200)]) / initial_modes(0, 0, std=0.5).std()
    assert spread > 1
    fields = [Burgers(0.01, (24, 24)).to_field(torch.from_numpy(initial_modes(0, i))) for i in range(100)]
    assert torch.stack(fields).square().mean().sqrt().item() == pytest.approx(0.5, rel=0.05)


def test_a_flow_that_blows_up_is_one_sentence() -> None:
    coarse = GenerateConfig(nu=1e-7, resolution=8, grid=8, frames=100, interval=1.0, initial_std=100.0)
    with pytest.raises(UserError, match="blew up on the 8 x 8 grid; try --grid 16"):
        solve_samples(coarse.settings, [0])
