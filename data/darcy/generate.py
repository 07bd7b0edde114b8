"""Permeabilities and pressures; `data.fields.generator` makes files of them."""

from collections.abc import Sequence

import numpy as np
import torch

from data.darcy.config import Darcy
from data.darcy.medium import permeability
from data.darcy.solver import solve
from data.fields.geometry import Box
from data.fields.layout import Array, Grid, Layout


def layout(settings: Darcy) -> Layout:
    """Permeability and pressure in the middles of cells."""
    grid = Grid.of(Box("walls", "walls"), settings.resolution)
    once = torch.zeros(1, dtype=torch.float64)
    return Layout(settings.problem, ("pressure",), grid, once, inputs=("permeability",), static=True)


def solve_samples(settings: Darcy, samples: Sequence[int]) -> Array:
    """The given samples as [sample, x, y, 1, (permeability, pressure)]."""
    stride = settings.grid // settings.resolution
    kept = slice(stride // 2, None, stride)
    seen = []
    for sample in samples:
        a = permeability(settings.grid, settings.seed, sample, settings.high, settings.low)
        p = solve(a, np.ones_like(a))
        seen.append(np.stack((a[kept, kept], p[kept, kept]), axis=-1)[:, :, None])
    return np.stack(seen).astype(np.float32)
