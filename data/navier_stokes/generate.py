"""Trajectories of the flow; `data.fields.generator` makes files of them."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch

from data.fields.geometry import Box
from data.fields.layout import Array, Grid, Layout
from data.navier_stokes.config import Flow
from data.navier_stokes.initial import initial_field
from data.navier_stokes.solver import NavierStokes
from data.parallel import in_groups, reproducible_cpu
from lab.errors import UserError


def layout(flow: Flow) -> Layout:
    """Vorticity at t = 1, 2, ...; the initial field is apart, because FNO's protocol counts frames from t = 1."""
    times = torch.arange(1.0, flow.final_time + 1, dtype=torch.float64)
    grid = Grid.of(Box(), flow.resolution)
    return Layout(flow.problem, ("vorticity",), grid, times, inputs=("vorticity",))


def solve_samples(flow: Flow, samples: Sequence[int], device: str = "cpu") -> Array:
    """The given samples as w[sample, x, y, frame, 1], frame 0 being the initial field."""
    _check_device(device)
    solver = NavierStokes(flow.nu, flow.grid, dtype=getattr(torch, flow.precision), device=device)
    if device != "cpu":
        return _solve_group(flow, solver, samples)
    with reproducible_cpu():
        return in_groups(samples, flow.together, lambda group: _solve_group(flow, solver, group))


def _solve_group(flow: Flow, solver: NavierStokes, samples: Sequence[int]) -> Array:
    fields = [initial_field(flow.grid, flow.seed, sample, flow.initial_std) for sample in samples]
    initial, stride = torch.from_numpy(np.stack(fields)), flow.grid // flow.resolution
    try:
        frames = chain([initial], solver.frames(initial, flow.final_time))
        seen = [frame[:, ::stride, ::stride].to("cpu", torch.float32) for frame in frames]
    except FloatingPointError as error:
        raise UserError(f"{error}; try --grid {2 * flow.grid}.") from error
    return torch.stack(seen, dim=-1)[..., None].numpy()


def _check_device(device: str) -> None:
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {device} cannot be used here; try --device cpu.") from error
