"""Make a data set: in parallel, sample by sample, resumable at any moment.

Every finished sample is a small file of its own in a folder beside the target, written under a temporary name
and renamed. A killed run therefore leaves whole samples only, and the same command makes the others. When all
are there they are assembled into one HDF5 file, again under a temporary name. Nothing in a sample depends on
which process made it, or with which others.
"""

import fcntl
import math
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from data.navier_stokes.config import Flow, GenerateConfig
from data.navier_stokes.file import holds, write_file
from lab.console import say
from lab.errors import UserError
from lab.files import atomic_path, unwritable
from lab.paths import datasets_dir
from lab.progress import Progress

Samples = npt.NDArray[np.float32]

POINTS_AT_ONCE = {"cpu": 16 * 64 * 64, "gpu": 1024 * 64 * 64}
"""Grid points in a batch: as many as stay in a core's cache, or as fill a GPU."""


def ensure(config: GenerateConfig) -> Path:
    """Return a file that holds these samples, making what is missing with a progress bar.

    A file of the same flow with more samples serves as well; its first ones are these.
    """
    if config.path.exists():
        if holds(config.path, config):
            return config.path
    else:
        for path in sorted(datasets_dir().glob("navier_stokes_*.h5")):
            with suppress(UserError):  # a damaged file is no concern of this one
                if holds(path, config):
                    return path
    return generate(config)


def generate(config: GenerateConfig) -> Path:
    """Make the file at `config.path`, or finish it, and return its path."""
    path = config.path
    if path.exists() and not holds(path, config):
        raise UserError(
            f"{path} exists and holds other data than asked for; delete it or choose another name with --out."
        )
    parts = path.with_name(f".{path.stem}.{config.flow.fingerprint}.parts")
    with _only_process(parts):
        if path.exists():
            say(f"{path} is complete already")
        else:
            _make_samples(config, parts)
            _assemble(config, parts)
            say(f"wrote {path}")
        shutil.rmtree(parts, ignore_errors=True)
    return path


def solve_samples(flow: Flow, samples: Sequence[int], device: str = "cpu") -> Samples:
    """The given samples as w[sample, x, y, frame], frame 0 being the initial field."""
    import torch

    from data.navier_stokes.initial import initial_field
    from data.navier_stokes.solver import NavierStokes, reproducible_cpu

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


def _make_samples(config: GenerateConfig, parts: Path) -> None:
    flow, device = config.flow, config.device
    _check_device(device)
    missing = [sample for sample in config.samples if not _is_whole(_part(parts, sample), flow)]
    label = f"Navier-Stokes nu = {flow.nu:g}"
    with Progress(len(config.samples), label) as progress:
        progress.skip(len(config.samples) - len(missing))
        for count in _solved_batches(flow, _batches(missing, config), parts, config):
            progress.advance(count)


def _batches(missing: list[int], config: GenerateConfig) -> list[list[int]]:
    points = POINTS_AT_ONCE["cpu" if config.device == "cpu" else "gpu"]
    cached = max(1, points // config.flow.grid**2)
    size = config.batch_size or min(cached, math.ceil(len(missing) / _workers(config)))
    return [missing[i : i + size] for i in range(0, len(missing), max(1, size))]


def _workers(config: GenerateConfig) -> int:
    if config.workers is None and config.device == "cpu":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return config.workers or 1


def _solved_batches(
    flow: Flow, batches: list[list[int]], parts: Path, config: GenerateConfig
) -> Iterator[int]:
    """Solve and store all batches; give the size of each as it is done."""
    workers = min(_workers(config), len(batches))
    if workers <= 1:
        for batch in batches:
            yield _solve_and_store(flow, batch, parts, config.device)
        return
    spawn = multiprocessing.get_context("spawn")  # a forked process cannot use torch's threads or CUDA
    with (
        worker_environment(),
        ProcessPoolExecutor(workers, mp_context=spawn, initializer=_end_with_parent) as pool,
    ):
        jobs = [pool.submit(_solve_and_store, flow, batch, parts, config.device) for batch in batches]
        try:
            for job in as_completed(jobs):
                yield job.result()
        except BrokenProcessPool as error:
            raise UserError(
                "a worker process was ended from outside, perhaps for want of memory; "
                "the same command continues, and --workers 1 needs the least."
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _solve_and_store(flow: Flow, samples: list[int], parts: Path, device: str) -> int:
    for sample, trajectory in zip(samples, solve_samples(flow, samples, device), strict=True):
        with atomic_path(_part(parts, sample)) as temporary:
            np.save(temporary, trajectory)
    return len(samples)


def _end_with_parent() -> None:
    """A killed parent cannot tell its workers to stop: each watches it. Ctrl-C ends them without a word."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def worker_environment() -> Iterator[None]:
    """Settings that a process reads once, when it starts.

    By default malloc returns every large array to the system, which hands it out again page by page: for the
    solver's short-lived arrays that costs up to half of the time.
    """
    settings = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "2000000000"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _assemble(config: GenerateConfig, parts: Path) -> None:
    for left_by_a_kill in config.path.parent.glob(f".{config.path.stem}.*.tmp{config.path.suffix}"):
        left_by_a_kill.unlink(missing_ok=True)
    trajectories = (np.load(_part(parts, sample)) for sample in config.samples)
    write_file(config.path, config.attributes(), trajectories)


def _part(parts: Path, sample: int) -> Path:
    return parts / f"{sample:06}.npy"


def _is_whole(part: Path, flow: Flow) -> bool:
    try:
        stored = np.load(part, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return False
    return bool(stored.shape == (flow.resolution, flow.resolution, flow.final_time + 1))


def _check_device(device: str) -> None:
    if device == "cpu":
        return
    import torch

    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"--device {device} cannot be used here; try --device cpu.") from error


@contextmanager
def _only_process(parts: Path) -> Iterator[None]:
    """Hold the folder of finished samples for this process; wait if another one is at work on it."""
    lock = parts.with_suffix(".lock")
    try:
        parts.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    except OSError as error:
        raise unwritable(parts.parent, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is making this data set; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
        lock.unlink(missing_ok=True)
