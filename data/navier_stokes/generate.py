"""Make a data set of trajectories; how it is made, and continued after a kill, is in data/making.py."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from data import making
from data.making import Array, Job, cpu_count, reproducible_cpu
from data.navier_stokes.config import Flow, GenerateConfig
from data.navier_stokes.file import write_file
from lab.errors import UserError

POINTS_AT_ONCE = {"cpu": 16 * 64 * 64, "gpu": 1024 * 64 * 64}
"""Grid points in a batch: as many as stay in a core's cache, or as fill a GPU."""


def ensure(config: GenerateConfig) -> Path:
    """Return a file that holds these samples, making what is missing with a progress bar.

    A file of the same flow with more samples serves as well; its first ones are these.
    """
    return making.ensure(_job(config), "navier_stokes_*.h5")


def generate(config: GenerateConfig) -> Path:
    """Make the file at `config.path`, or finish it, and return its path."""
    return making.make(_job(config))


def solve_samples(flow: Flow, samples: Sequence[int], device: str = "cpu") -> Array:
    """The given samples as w[sample, x, y, frame], frame 0 being the initial field."""
    import torch

    from data.navier_stokes.initial import initial_field
    from data.navier_stokes.solver import NavierStokes

    fields = [initial_field(flow.grid, flow.seed, sample, flow.initial_std) for sample in samples]
    initial = torch.from_numpy(np.stack(fields))
    stride = flow.grid // flow.resolution
    solver = NavierStokes(flow.nu, flow.grid, dtype=getattr(torch, flow.precision), device=device)
    seen = []
    try:
        with reproducible_cpu():
            for frame in chain([initial], solver.frames(initial, flow.final_time)):
                seen.append(frame[:, ::stride, ::stride].to("cpu", torch.float32))
    except FloatingPointError as error:
        raise UserError(f"{error}; try --grid {2 * flow.grid}.") from error
    return torch.stack(seen, dim=-1).numpy()


def _job(config: GenerateConfig) -> Job:
    flow, kind = config.flow, "cpu" if config.device == "cpu" else "gpu"
    return Job(
        path=config.path,
        fingerprint=flow.fingerprint,
        label=f"Navier-Stokes nu = {flow.nu:g}",
        samples=config.samples,
        shape=(flow.resolution, flow.resolution, flow.final_time + 1),
        solve=partial(_solve_on, flow, config.device),
        write=partial(write_file, config.path, config.attributes()),
        batch_size=config.batch_size or max(1, POINTS_AT_ONCE[kind] // flow.grid**2),
        workers=config.workers or (cpu_count() if kind == "cpu" else 1),
    )


def _solve_on(flow: Flow, device: str, samples: list[int]) -> Array:
    _check_device(device)
    return solve_samples(flow, samples, device)


def _check_device(device: str) -> None:
    if device == "cpu":
        return
    import torch

    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {device} cannot be used here; try --device cpu.") from error
