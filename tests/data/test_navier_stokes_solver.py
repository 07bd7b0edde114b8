"""The solver against exact solutions, conservation laws, other schemes and an independent solver."""

import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from data.navier_stokes.diagnostics import energy, enstrophy
from data.navier_stokes.fno_scheme import fno_scheme
from data.navier_stokes.initial import initial_field
from data.navier_stokes.solver import FEWEST_STEPS, NavierStokes, fno_forcing
from data.parallel import reproducible_cpu

TAU = 2 * math.pi


def mesh(grid: int) -> tuple[Tensor, Tensor]:
    x = torch.arange(grid, dtype=torch.float64) / grid
    return x[:, None].expand(grid, grid), x[None, :].expand(grid, grid)


def random_fields(grid: int, count: int = 1, scale: float = 1.0) -> Tensor:
    return scale * torch.from_numpy(np.stack([initial_field(grid, 0, i) for i in range(count)]))


def relative(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("waves", [1, 3])
def test_taylor_green_vortices_decay_exactly(waves: int) -> None:
    x, y = mesh(32)
    nu, time = 2e-3, 2
    vortices = torch.sin(TAU * waves * x) * torch.sin(TAU * waves * y)
    expected = math.exp(-2 * nu * (TAU * waves) ** 2 * time) * vortices
    found = NavierStokes(nu, 32, forcing=None).solve(vortices[None], time)[0, ..., -1]
    assert relative(found, expected) < 1e-10


def test_a_single_forced_mode_follows_its_linear_equation() -> None:
    x, y = mesh(32)
    nu, time = 1e-3, 10
    rate = nu * 2 * TAU**2
    start = 0.3 * torch.sin(TAU * (x + y))
    expected = math.exp(-rate * time) * start + (1 - math.exp(-rate * time)) / rate * fno_forcing(x, y)
    found = NavierStokes(nu, 32).solve(start[None], time)[0, ..., -1]
    assert relative(found, expected) < 1e-10


def test_tendency_is_the_advective_form_on_a_finer_grid() -> None:
    flow = NavierStokes(1e-4, 32)
    modes = flow.to_modes(random_fields(32, scale=3.0))
    coarse = flow.to_field(flow.tendency(modes))[0]

    spectrum = torch.fft.fft2(flow.to_field(modes)[0], norm="forward")
    k = 32 * torch.fft.fftfreq(32, dtype=torch.float64)
    kx, ky = k[:, None], k[None, :]
    padded = [_zero_padded(table * spectrum, 128) for table in _gradients_and_velocity(kx, ky)]
    w_x, w_y, u, v = (torch.fft.ifft2(p, norm="forward").real for p in padded)
    exact = torch.fft.fft2(fno_forcing(*mesh(128)) - u * w_x - v * w_y, norm="forward")
    kept = (kx.abs() <= flow.cutoff) & (ky.abs() <= flow.cutoff)
    index = torch.arange(-16, 16).roll(16)
    expected = torch.fft.ifft2(kept * exact[index][:, index], norm="forward").real
    assert relative(coarse, expected) < 1e-12


def _gradients_and_velocity(kx: Tensor, ky: Tensor) -> list[Tensor]:
    squared = (TAU**2 * (kx**2 + ky**2)).clamp(min=1.0)
    return [1j * TAU * kx, 1j * TAU * ky, 1j * TAU * ky / squared, -1j * TAU * kx / squared]


def _zero_padded(spectrum: Tensor, grid: int) -> Tensor:
    n = spectrum.shape[-1]
    index = torch.arange(-(n // 2), n // 2).roll(n // 2)
    larger = torch.zeros(grid, grid, dtype=spectrum.dtype)
    larger[index[:, None] % grid, index[None, :] % grid] = spectrum
    return larger


def test_time_stepping_is_of_order_four() -> None:
    flow = NavierStokes(1e-3, 32)
    start = flow.to_modes(random_fields(32, scale=8.0))
    reference = flow.integrate(start, 1.0, 640)
    counts = [20, 28, 40, 56, 80]
    errors = [relative(flow.integrate(start, 1.0, n), reference) for n in counts]
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert 3.8 < slope < 4.2, errors


def test_energy_and_enstrophy_budgets_close_with_forcing() -> None:
    nu, steps, duration = 1e-3, 256, 2.0
    flow = NavierStokes(nu, 48)
    modes = flow.to_modes(random_fields(48, scale=4.0))
    force = flow.to_field(flow.to_modes(fno_forcing(*mesh(48))))
    history = [modes]
    for _ in range(steps):
        history.append(flow.step(history[-1], duration / steps))
    w = torch.stack([flow.to_field(m)[0] for m in history])

    laplacian = -flow._laplacian.clamp(max=-1.0)
    psi = torch.stack([flow.to_field(m / laplacian)[0] for m in history])
    minus_laplacian_w = torch.stack([flow.to_field(-flow._laplacian * m)[0] for m in history])
    input_of_energy, input_of_enstrophy = ((psi * force).mean((1, 2)), (w * force).mean((1, 2)))
    palinstrophy = (w * minus_laplacian_w).mean((1, 2)) / 2
    budgets = {
        "energy": (energy(w), input_of_energy - 2 * nu * enstrophy(w)),
        "enstrophy": (enstrophy(w), input_of_enstrophy - 2 * nu * palinstrophy),
    }
    simpson = torch.tensor([1.0] + [4.0, 2.0] * (steps // 2 - 1) + [4.0, 1.0]).double()
    for name, (quantity, rate) in budgets.items():
        gained = float((simpson * rate).sum() * duration / steps / 3)
        assert abs(float(quantity[-1] - quantity[0]) - gained) < 1e-6 * float(quantity[0]), name
        assert abs(gained) > 1e-3 * float(quantity[0]), f"the {name} hardly changed: nothing was tested"


def test_agrees_with_the_published_fno_scheme() -> None:
    """Over one unit of time; benchmarks/navier_stokes.py does ten, which takes minutes.

    The published scheme cuts off its advection term only: modes beyond the cut-off must not be there at the
    start, or they take more than one unit of time to die out.
    """
    nus, time, grid = torch.tensor([1e-3, 1e-4], dtype=torch.float64), 1, 32
    flow = NavierStokes(1e-3, grid)
    start = flow.to_field(flow.to_modes(random_fields(grid)))
    published = fno_scheme(
        start.expand(2, grid, grid), fno_forcing(*mesh(grid)), nus[:, None, None], 10_000 * time
    )
    for nu, expected in zip(nus.tolist(), published, strict=True):
        assert relative(NavierStokes(nu, grid).solve(start, time)[0, ..., -1], expected) < 2e-5


EXPONAX = """
import sys, exponax, jax, numpy
jax.config.update("jax_enable_x64", True)
nu, grid, steps = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
stepper = exponax.stepper.NavierStokesVorticity(2, 1.0, grid, 1 / steps, diffusivity=nu, order=4)
# Its stream function has the other sign, so its vorticity turns the other way.
numpy.save(sys.argv[5], -exponax.repeat(stepper, steps)(-numpy.load(sys.argv[4])))
"""


def test_agrees_with_exponax(tmp_path: Path) -> None:
    """In a process of its own, since JAX objects to later forks; well resolved, since its cut-off is not ours."""
    if find_spec("exponax") is None:
        pytest.skip("exponax, an independent solver, is not installed")
    nu, grid, steps = 4e-3, 48, 100
    x, y = (TAU * axis for axis in mesh(grid))
    smooth = torch.sin(x) * torch.cos(y) + torch.cos(2 * x + y) - torch.sin(x - 2 * y + 1)
    flow = NavierStokes(nu, grid, forcing=None)
    modes = flow.to_modes(smooth[None])
    start, ours = flow.to_field(modes), flow.to_field(flow.integrate(modes, 1.0, steps))
    files = tmp_path / "start.npy", tmp_path / "end.npy"
    np.save(files[0], start.numpy())
    arguments = [str(value) for value in (nu, grid, steps, *files)]
    subprocess.run([sys.executable, "-c", EXPONAX, *arguments], check=True, capture_output=True)
    assert relative(ours, torch.from_numpy(np.load(files[1]))) < 1e-6
    assert relative(ours, start) > 0.1, "the flow hardly moved: nothing was tested"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("grid", [32, 64, 96, 128])
def test_a_sample_depends_on_its_batch_by_rounding_alone(grid: int, dtype: torch.dtype) -> None:
    flow = NavierStokes(1e-4, grid, dtype=dtype)
    start = random_fields(grid, count=5) * torch.tensor([1.0, 8.0, 2.0, 1.0, 4.0])[:, None, None]
    asked = {flow._steps(speed) for speed in flow.speed(flow.to_modes(start.to(dtype))).tolist()}
    assert len(asked) > 1, "all samples take the same steps: nothing was tested"
    with reproducible_cpu():
        together = flow.solve(start, 1)
        for part in (slice(0, 1), slice(3, 4), slice(1, 4), slice(2, 5)):
            tolerance = 100 * torch.finfo(dtype).eps * float(together.abs().max())
            torch.testing.assert_close(flow.solve(start[part], 1), together[part], rtol=0, atol=tolerance)


def test_a_flow_that_outruns_its_step_is_done_again_with_more() -> None:
    grid = 32
    flow = NavierStokes(
        1e-3, grid, forcing=lambda x, y: 600 * fno_forcing(x, 2 * y) + 300 * fno_forcing(x, -y)
    )
    rest = flow.to_modes(torch.zeros(1, grid, grid, dtype=torch.float64))
    moved = flow.advance(rest)
    assert relative(moved, flow.integrate(rest, 1.0, 1024)) < 1e-3
    too_few = flow.integrate(rest, 1.0, FEWEST_STEPS)
    assert not relative(too_few, moved) < 0.1, "the first count was enough: nothing was tested"


def test_a_blow_up_is_reported() -> None:
    with pytest.raises(FloatingPointError, match="blew up"):
        NavierStokes(1e-3, 32).solve(random_fields(32, scale=1e6), 1)


def test_float32_stays_close_to_float64() -> None:
    start = random_fields(32)
    single = NavierStokes(1e-4, 32, dtype=torch.float32).solve(start, 5).double()
    assert relative(single, NavierStokes(1e-4, 32).solve(start, 5)) < 1e-5
