"""Make a data set of trajectories; how it is continued after a kill is in data/making.py."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data import field_sets
from data.burgers.config import Burgers, GenerateConfig
from data.field_sets import Layout, cell_centres
from data.making import Array, reproducible_cpu


def ensure(config: GenerateConfig) -> Path:
    """Return a file that holds these samples, making what is missing with a progress bar."""
    return field_sets.ensure(config, layout(config.settings), solve_samples)


def generate(config: GenerateConfig) -> Path:
    """Make the file at `config.path`, or finish it, and return its path."""
    return field_sets.generate(config, layout(config.settings), solve_samples)


def layout(settings: Burgers) -> Layout:
    """Both components of the velocity in the middles of cells."""
    points = cell_centres(settings.resolution)
    return Layout(("u", "v"), points, points, settings.interval * np.arange(float(settings.frames)))


def solve_samples(settings: Burgers, samples: Sequence[int]) -> Array:
    """The given samples as [sample, x, y, frame, (u, v)], frame 0 being the initial field."""
    import torch

    from data.burgers.initial import initial_modes
    from data.burgers.solver import Burgers as Solver

    solver = Solver(settings.nu, (settings.grid, settings.grid), dtype=getattr(torch, settings.precision))
    points = torch.from_numpy(cell_centres(settings.resolution))
    seen = []
    with reproducible_cpu():
        for sample in samples:
            start = solver.padded(
                torch.from_numpy(initial_modes(settings.seed, sample, settings.initial_std))
            )
            frames = solver.frames(start, settings.interval, settings.frames)
            seen.append(torch.stack([solver.at(modes, points).float() for modes in frames], dim=-1))
    return torch.stack(seen).movedim(1, -1).numpy()
