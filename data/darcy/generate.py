"""Make a data set of permeabilities and pressures; how it is continued after a kill is in data/making.py."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data import field_sets
from data.darcy.config import Darcy, GenerateConfig
from data.field_sets import Layout, cell_centres
from data.making import Array


def ensure(config: GenerateConfig) -> Path:
    """Return a file that holds these samples, making what is missing with a progress bar."""
    return field_sets.ensure(config, layout(config.settings), solve_samples)


def generate(config: GenerateConfig) -> Path:
    """Make the file at `config.path`, or finish it, and return its path."""
    return field_sets.generate(config, layout(config.settings), solve_samples)


def layout(settings: Darcy) -> Layout:
    """Permeability and pressure in the middles of cells."""
    points = cell_centres(settings.resolution)
    return Layout(("pressure",), points, points, np.zeros(1), inputs=("permeability",))


def solve_samples(settings: Darcy, samples: Sequence[int]) -> Array:
    """The given samples as [sample, x, y, 1, (permeability, pressure)]."""
    from data.darcy.medium import permeability
    from data.darcy.solver import solve

    stride = settings.grid // settings.resolution
    kept = slice(stride // 2, None, stride)
    seen = []
    for sample in samples:
        a = permeability(settings.grid, settings.seed, sample, settings.high, settings.low)
        p = solve(a, np.ones_like(a))
        seen.append(np.stack((a[kept, kept], p[kept, kept]), axis=-1)[:, :, None])
    return np.stack(seen).astype(np.float32)
