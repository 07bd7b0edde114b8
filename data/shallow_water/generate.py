"""Trajectories of the water; `data.fields.generator` makes files of them."""

from collections.abc import Sequence

import numpy as np
import torch

from data.fields.geometry import Sphere
from data.fields.layout import Array, Grid, Layout
from data.parallel import in_groups, reproducible_cpu
from data.shallow_water.config import TOGETHER, ShallowWater
from data.shallow_water.initial import initial_state
from data.shallow_water.solver import ShallowWater as Solver
from lab.errors import UserError

HOUR = 3600.0


def layout(settings: ShallowWater) -> Layout:
    """Three fields on the Legendre-Gauss grid, from north to south; times in hours after the spin-up."""
    grid = Grid.of(Sphere(), settings.resolution, settings.columns)
    times = torch.arange(settings.frames, dtype=torch.float64)
    return Layout(settings.problem, ("geopotential", "vorticity", "divergence"), grid, times)


def solve_samples(settings: ShallowWater, samples: Sequence[int]) -> Array:
    """The given samples as [sample, latitude, longitude, hour, (geopotential, vorticity, divergence)].

    Without dimension: (phi - g H) / (g 120 m), and vorticity and divergence times radius / sqrt(g H).
    """
    solver = Solver(settings.resolution, settings.columns, HOUR / settings.steps_per_hour)
    with reproducible_cpu():
        made = in_groups(samples, TOGETHER, lambda group: _solve_group(settings, solver, group))
    if not np.isfinite(made).all():
        raise UserError(
            f"the water blew up; try --steps-per-hour {2 * settings.steps_per_hour} or a smaller --mach."
        )
    return made


def _solve_group(settings: ShallowWater, solver: Solver, samples: range) -> Array:
    start = torch.stack(
        [
            initial_state(solver, settings.seed, sample, settings.mach, settings.degree_scale)
            for sample in samples
        ]
    )
    steps = settings.steps_per_hour
    state = solver.integrate(start, settings.spin_up * steps)
    frames = [solver.without_dimension(state) for state in solver.frames(state, steps, settings.frames)]
    return torch.stack(frames, dim=-1).movedim(1, -1).float().numpy()
