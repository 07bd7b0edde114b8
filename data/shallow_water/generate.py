"""Make a data set of trajectories; how it is continued after a kill is in data/making.py."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from data import field_sets
from data.field_sets import Layout
from data.making import Array, reproducible_cpu
from data.shallow_water.config import GenerateConfig, ShallowWater

if TYPE_CHECKING:
    from data.shallow_water.solver import ShallowWater as Solver

HOUR = 3600.0
TOGETHER = 10
"""Samples solved at once, always the same ones: sample i with those of equal i // 10. The last bits of a product of
matrices can depend on how many columns there are, and a sample must not depend on which others were asked for."""


def ensure(config: GenerateConfig) -> Path:
    """Return a file that holds these samples, making what is missing with a progress bar."""
    return field_sets.ensure(config, layout(config.settings), solve_samples)


def generate(config: GenerateConfig) -> Path:
    """Make the file at `config.path`, or finish it, and return its path."""
    return field_sets.generate(config, layout(config.settings), solve_samples)


def layout(settings: ShallowWater) -> Layout:
    """Three fields on the Legendre-Gauss grid, from north to south; times in hours after the spin-up."""
    nodes, weights = np.polynomial.legendre.leggauss(settings.resolution)
    longitudes = 2 * np.pi * np.arange(2 * settings.resolution) / (2 * settings.resolution)
    return Layout(
        ("geopotential", "vorticity", "divergence"),
        rows=np.arccos(nodes[::-1]),
        columns=longitudes,
        times=np.arange(float(settings.frames)),
        weights=weights[::-1],
        at_once=TOGETHER,
    )


def solve_samples(settings: ShallowWater, samples: Sequence[int]) -> Array:
    """The given samples as [sample, latitude, longitude, hour, (geopotential, vorticity, divergence)].

    Without dimension: (phi - g H) / (g 120 m), and vorticity and divergence times radius / sqrt(g H).
    """
    from data.shallow_water.solver import ShallowWater as Solver

    solver = Solver(settings.resolution, 2 * settings.resolution, HOUR / settings.steps_per_hour)
    made: dict[int, Array] = {}
    with reproducible_cpu():
        for group in sorted({sample // TOGETHER for sample in samples}):
            members = range(group * TOGETHER, (group + 1) * TOGETHER)
            made.update(zip(members, _solve_group(settings, solver, members), strict=True))
    return np.stack([made[sample] for sample in samples])


def _solve_group(settings: ShallowWater, solver: "Solver", samples: range) -> Array:
    import torch

    from data.shallow_water.initial import initial_state

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
