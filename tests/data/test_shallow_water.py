"""Shallow water on the sphere: the equations, their invariants, steps, grids; torch-harmonics present or not."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from data.fields.generator import generate
from data.fields.reader import open_fields
from data.shallow_water.config import GenerateConfig
from data.shallow_water.generate import layout, solve_samples
from data.shallow_water.initial import initial_state
from data.shallow_water.solver import ShallowWater
from lab.errors import UserError

SMALL = GenerateConfig(num_samples=2, resolution=16, frames=3, spin_up=1, steps_per_hour=4, workers=1)


def start(solver: ShallowWater, samples: int = 2) -> Tensor:
    return torch.stack([initial_state(solver, 0, i, mach=4.0, degree_scale=5.0) for i in range(samples)])


def steady_zonal_flow(solver: ShallowWater, speed: float = 40.0) -> Tensor:
    """Williamson's second test: solid rotation in balance with its height, phi = g H - (R Omega u + u²/2) sin².

    Vorticity is 2 u sin(latitude) / R, so only degrees 0, 1 and 2 take part.
    """
    base = solver.base
    sine = torch.sin(base.lats).reshape(1, -1, 1).expand(1, -1, base.nlon)
    phi = base.gravity * base.havg - (base.radius * base.omega * speed + speed**2 / 2) * sine**2
    fields = torch.cat((phi, 2 * speed * sine / base.radius, torch.zeros_like(sine)))
    return base.grid2spec(fields)[None]


def test_the_tendency_is_that_of_torch_harmonics() -> None:
    solver = ShallowWater(16, 32, 600.0)
    state = solver.integrate(start(solver), 3)
    expected = torch.stack([solver.base.dudtspec(one) for one in state])
    for found, wanted in zip(solver.tendency(state).unbind(1), expected.unbind(1), strict=True):
        assert (found - wanted).abs().max() < 1e-11 * wanted.abs().max()


def test_a_steady_zonal_flow_stays_steady() -> None:
    solver = ShallowWater(16, 32, 600.0)
    solver.base.hyperdiff.fill_(1.0)  # at 64 latitudes it would be too weak to see: 1e-12 a step at degree 1
    state = steady_zonal_flow(solver)
    day = solver.to_grid(solver.integrate(state, 144))
    first = solver.to_grid(state)
    winds = solver.base.getuv(state[:, 1:])
    assert winds[:, 0].abs().max() == pytest.approx(40.0 * math.cos(solver.base.lats.abs().min()), rel=1e-10)
    assert (day[:, 0] - first[:, 0]).abs().max() < 1e-8 * first[:, 0].std()
    assert (day[:, 1] - first[:, 1]).abs().max() < 1e-7 * first[:, 1].abs().max()
    assert day[:, 2].abs().max() < 1e-6 * first[:, 1].abs().max()


def test_mass_is_conserved_and_energy_nearly() -> None:
    solver = ShallowWater(16, 32, 450.0)
    before = start(solver)
    after = solver.integrate(before, 96)
    base = solver.base

    def totals(state: Tensor) -> tuple[Tensor, Tensor]:
        grid, wind = solver.to_grid(state), base.getuv(state[:, 1:])
        phi = grid[:, 0] - base.gravity * base.havg
        energy = (grid[:, 0] * wind.square().sum(1) + phi**2) / 2
        return base.integrate_grid(grid[:, 0]), base.integrate_grid(energy)

    (mass, energy), (mass_then, energy_then) = totals(before), totals(after)
    assert torch.allclose(mass, mass_then, rtol=1e-12)
    assert torch.all((energy_then < energy) & (energy_then > 0.9 * energy))  # hyperdiffusion takes a little


def test_the_error_of_a_step_is_of_order_four() -> None:
    """Without hyperdiffusion, which is applied after each step and is of order one."""
    ends = []
    for steps in (8, 16, 32):
        solver = ShallowWater(16, 32, 3 * 3600.0 / steps)
        solver.base.hyperdiff.fill_(1.0)
        ends.append(solver.integrate(start(solver), steps))
    order = math.log2(float((ends[0] - ends[1])[:, 1:].norm() / (ends[1] - ends[2])[:, 1:].norm()))
    assert 3.7 < order < 4.4


def test_a_finer_grid_gives_the_same_coefficients() -> None:
    """Products of two fields are free of aliasing at the degrees kept: only rounding is left."""
    coarse = ShallowWater(16, 32, 600.0)
    fine = ShallowWater(24, 48, 600.0, degrees=coarse.degrees)
    state = start(coarse)
    found, expected = coarse.integrate(state, 36), fine.integrate(state, 36)
    for one, other in zip(found.unbind(1), expected.unbind(1), strict=True):
        assert (one - other).norm() < 1e-9 * other.norm()
    aliased = ShallowWater(16, 32, 600.0, degrees=16)
    wide = torch.zeros(2, 3, 16, 16, dtype=state.dtype)
    wide[..., : coarse.degrees, : coarse.degrees] = state
    with_more = ShallowWater(24, 48, 600.0, degrees=16).integrate(wide, 36)
    assert (aliased.integrate(wide, 36) - with_more)[:, 1].norm() > 1e-6 * with_more[:, 1].norm()


def test_height_adjusts_to_the_wind_in_the_spin_up() -> None:
    solver = ShallowWater(32, 64, 600.0)
    states = list(
        solver.frames(torch.stack([initial_state(solver, 0, i, 4.0, 12.0) for i in range(2)]), 6, 9)
    )
    height = [float(solver.without_dimension(state)[:, 0].std()) for state in states]
    assert height[0] < 0.2 * height[6]
    assert 0.6 < height[8] / height[6] < 1.6


def test_a_sample_does_not_depend_on_which_others_are_made() -> None:
    settings = SMALL.settings
    both = solve_samples(settings, [0, 3])
    assert np.array_equal(solve_samples(settings, [3])[0], both[1])
    assert not np.allclose(both[0], both[1], atol=0.1)
    before = torch.random.get_rng_state()
    solve_samples(settings, [0])
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_file_holds_grid_and_quadrature(tmp_path: Path) -> None:
    from torch_harmonics.quadrature import legendre_gauss_weights

    path = generate(GenerateConfig(**SMALL.__dict__ | {"out": tmp_path / "sphere.h5"}))
    fields = open_fields(path)
    assert fields.names == ("geopotential", "vorticity", "divergence")
    assert fields.load().shape == (2, 16, 32, 3, 3)
    cosines, weights = legendre_gauss_weights(16, -1, 1)
    assert torch.allclose(fields.grid.rows.cos(), cosines.flip(0), atol=1e-12)  # from the north pole
    rows = fields.grid.weights
    assert rows is not None
    assert torch.allclose(rows.double(), 8 * weights, atol=1e-6)
    mean = (fields.load()[..., 0] * rows[:, None, None]).mean((1, 2))
    assert mean.std(1).max() < 1e-5  # mass
    anomaly = fields.load()[..., 1:]
    assert (anomaly * rows[:, None, None, None]).mean((1, 2)).abs().max() < 1e-6  # curls and divergences


def test_the_grid_is_that_of_the_solver() -> None:
    solver, grid = ShallowWater(16, 32, 600.0), layout(SMALL.settings).grid
    np.testing.assert_allclose(grid.rows, math.pi / 2 - solver.base.lats.numpy(), atol=1e-12)
    np.testing.assert_allclose(grid.columns, solver.base.lons.numpy(), atol=1e-12)


def test_without_torch_harmonics_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torch_harmonics"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch_harmonics", None)
    with pytest.raises(UserError, match=r"needs torch-harmonics.*pip install 'monarch-science\[sphere\]'"):
        solve_samples(SMALL.settings, [0])


def test_water_that_blows_up_is_one_sentence() -> None:
    wild = GenerateConfig(num_samples=1, resolution=8, frames=4, mach=1000.0)
    with pytest.raises(UserError, match="blew up; try --steps-per-hour 16"):
        solve_samples(wild.settings, [0])
