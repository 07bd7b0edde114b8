"""The random start: torch-harmonics' own, made smooth and without divergence.

Its spectrum is white up to the last degree, and its height, vorticity and divergence know nothing of each other: what
follows is a sea of the shortest gravity waves, which turn over more than once between hourly frames and never settle.
Here the coefficients are tapered by exp(-(l / scale)²), so that the grid resolves every field with room to spare, and
the divergence is left to arise by itself; after a spin-up of some hours the height has adjusted to the wind. The mean
of the vorticity, which no wind on a sphere can have, is taken out.
"""

import numpy as np
import torch
from torch import Tensor

from data.shallow_water.solver import ShallowWater


def initial_state(solver: ShallowWater, seed: int, sample: int, mach: float, degree_scale: float) -> Tensor:
    """Sample number `sample`: coefficients [(geopotential, vorticity, divergence), degree, order]."""
    stream = int(np.random.SeedSequence([seed, sample]).generate_state(1, np.uint64)[0])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream)
        state = solver.base.random_initial_condition(mach=mach)
    mean = state[0, 0, 0].clone()
    state = state * torch.exp(-((solver.base.l / degree_scale) ** 2))
    state[0, 0, 0] = mean
    state[1, 0, 0] = 0.0
    state[2] = 0.0
    return state
