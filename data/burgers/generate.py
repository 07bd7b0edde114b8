"""Trajectories of the flow; `data.fields.generator` makes files of them."""

from collections.abc import Sequence

import torch

from data.burgers.config import Burgers
from data.burgers.initial import initial_modes
from data.burgers.solver import Burgers as Solver
from data.fields.geometry import Box
from data.fields.layout import Array, Grid, Layout
from data.parallel import reproducible_cpu
from lab.errors import UserError


def layout(settings: Burgers) -> Layout:
    """Both components of the velocity in the middles of cells."""
    grid = Grid.of(Box("walls", "walls"), settings.resolution)
    times = settings.interval * torch.arange(settings.frames, dtype=torch.float64)
    return Layout(settings.problem, ("u", "v"), grid, times)


def solve_samples(settings: Burgers, samples: Sequence[int]) -> Array:
    """The given samples as [sample, x, y, frame, (u, v)], frame 0 being the initial field."""
    solver = Solver(settings.nu, (settings.grid, settings.grid), dtype=getattr(torch, settings.precision))
    points = layout(settings).grid.rows
    seen = []
    with reproducible_cpu():
        for sample in samples:
            modes = torch.from_numpy(initial_modes(settings.seed, sample, settings.initial_std))
            frames = solver.frames(solver.padded(modes), settings.interval, settings.frames)
            try:
                seen.append(torch.stack([solver.at(modes, points).float() for modes in frames], dim=-1))
            except FloatingPointError as error:
                raise UserError(f"{error}; try --grid {2 * settings.grid} or a larger --nu.") from error
    return torch.stack(seen).movedim(1, -1).numpy()
