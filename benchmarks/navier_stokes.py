"""Speed and accuracy of the Navier-Stokes solver, as tables.

    python -m benchmarks.navier_stokes speed     a trajectory against the published FNO scheme (two minutes)
    python -m benchmarks.navier_stokes grids     the default grids against twice as fine ones (five minutes)
    python -m benchmarks.navier_stokes scheme    agreement with the published FNO scheme at T = 10 (two minutes)

Times are CPU seconds of one thread, so that other programs on the machine disturb them little.
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from data.fields.options import Precision
from data.navier_stokes.config import Flow, GenerateConfig
from data.navier_stokes.fno_scheme import fno_scheme
from data.navier_stokes.generate import solve_samples
from data.navier_stokes.initial import initial_field
from data.navier_stokes.solver import NavierStokes, fno_forcing
from data.parallel import reproducible_cpu
from lab.cli import main
from lab.memory import keep_freed
from lab.progress import clock
from lab.table import Column, Table

VISCOSITIES = (1e-3, 1e-4, 1e-5)
FNO_GRID, FNO_DT = 256, 1e-4


@dataclass(frozen=True)
class BenchmarkConfig:
    """Options of the benchmark."""

    fno_steps: int = 300
    """Steps of the published scheme that are timed; its time for a trajectory is extrapolated from them."""
    cores: int = 2
    """Cores to reckon the time of a data set of 1200 samples with."""


def speed(config: BenchmarkConfig) -> None:
    """Time a trajectory on the default grid against the published scheme in float32 on its 256 x 256 grid."""
    per_step = seconds_per_fno_step(config.fno_steps)
    print(f"published scheme: {1000 * per_step:.2f} ms per step (timed over {config.fno_steps} steps)")
    digits = {"published scheme, s (extrapolated)": 0, "this solver, s": 2, "times faster": 0}
    columns = [Column(title, digits=number) for title, number in digits.items()]
    data_set = Column(f"1200 samples on {config.cores} cores, h:min:s")
    table = Table([Column("nu"), Column("precision"), Column("grid"), *columns, data_set])
    precisions: tuple[Precision, ...] = ("float64", "float32")
    for nu in VISCOSITIES:
        for precision in precisions:
            flow = GenerateConfig(nu=nu, precision=precision).settings
            published = per_step * flow.final_time / FNO_DT
            ours = seconds_per_trajectory(flow)
            speeds = published, ours, published / ours
            table.add(f"{nu:g}", precision, flow.grid, *speeds, clock(1200 * ours / config.cores))
    print(table.markdown())


def seconds_per_fno_step(steps: int) -> float:
    """One step of the published scheme for one sample, float32, one thread."""
    initial = torch.from_numpy(initial_field(FNO_GRID, 0, 0)).float()
    forcing = forcing_on(FNO_GRID).float()
    with reproducible_cpu():
        fno_scheme(initial, forcing, 1e-4, 20)
        start = time.process_time()
        fno_scheme(initial, forcing, 1e-4, steps)
        return (time.process_time() - start) / steps


def seconds_per_trajectory(flow: Flow) -> float:
    """A whole trajectory, in a batch and a process like those of the generator."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(_time_batch, flow).result()


def _time_batch(flow: Flow) -> float:
    keep_freed()
    samples = range(flow.together)
    solve_samples(replace(flow, final_time=1), samples)
    start = time.process_time()
    solve_samples(flow, samples)
    return (time.process_time() - start) / len(samples)


def grids(config: BenchmarkConfig) -> None:
    """Compare the last frame on the default grid with that on twice the grid."""
    titles = "nu", "T", "grids", "sample 0", "sample 1", "float32 against float64, sample 0"
    table = Table([Column(title) for title in titles])
    for nu in VISCOSITIES:
        flow = GenerateConfig(nu=nu).settings
        samples = [0] if nu == 1e-5 else [0, 1]
        usual = last_frames(flow, samples)
        finer = last_frames(replace(flow, grid=2 * flow.grid), samples)
        single = last_frames(replace(flow, precision="float32"), [0])
        errors = [f"{relative(*pair):.1e}" for pair in zip(usual, finer, strict=True)]
        errors += [""] * (2 - len(errors))
        single_error = f"{relative(single[0], usual[0]):.1e}"
        table.add(f"{nu:g}", flow.final_time, f"{flow.grid}, {2 * flow.grid}", *errors, single_error)
        print(table.markdown(), flush=True)


def last_frames(flow: Flow, samples: list[int]) -> Tensor:
    """w[sample, x, y] at the final time, at the resolution of the file but in double precision."""
    initial = torch.stack([torch.from_numpy(initial_field(flow.grid, flow.seed, i)) for i in samples])
    solver = NavierStokes(flow.nu, flow.grid, dtype=getattr(torch, flow.precision))
    stride = flow.grid // flow.resolution
    with reproducible_cpu():
        *_, last = solver.frames(initial, flow.final_time)
    return last[:, ::stride, ::stride].double()


def scheme(config: BenchmarkConfig) -> None:
    """Compare with the published scheme, same initial field and 64 x 64 grid, float64, T = 10."""
    grid, final_time, nus = 64, 10, VISCOSITIES[:2]
    initial = torch.from_numpy(initial_field(grid, 0, 0))
    with reproducible_cpu():
        nu = torch.tensor(nus, dtype=torch.float64)[:, None, None]
        steps = round(final_time / FNO_DT)
        published = fno_scheme(initial.expand(len(nus), grid, grid), forcing_on(grid), nu, steps)
        for value, expected in zip(nus, published, strict=True):
            found = NavierStokes(value, grid).solve(initial[None], final_time)[0, ..., -1]
            print(f"nu = {value:g}: relative difference {relative(found, expected):.1e}", flush=True)


def forcing_on(grid: int) -> Tensor:
    """The forcing f[x, y] on a grid."""
    points = torch.arange(grid, dtype=torch.float64) / grid
    return fno_forcing(points[:, None], points[None, :])


def relative(found: Tensor, expected: Tensor) -> float:
    """|found - expected| / |expected|."""
    return float((found - expected).norm() / expected.norm())


if __name__ == "__main__":
    main({"speed": speed, "grids": grids, "scheme": scheme})
