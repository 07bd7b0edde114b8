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
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from data.generated import holds
from lab.console import say
from lab.errors import UserError
from lab.files import atomic_path, unwritable
from lab.paths import datasets_dir
from lab.progress import Progress

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Job:
    """The samples of one file, and how to make them.

    `solve` turns the numbers of some samples into an array of them, (samples, *shape); it is sent to other
    processes, so it is a module's function or a `functools.partial` of one. `write` puts all samples, given one
    by one, into the file.
    """

    path: Path
    fingerprint: str
    label: str
    samples: range
    shape: tuple[int, ...]
    solve: Callable[[list[int]], Array]
    write: Callable[[Iterator[Array]], None]
    batch_size: int
    workers: int

    @property
    def is_there(self) -> bool:
        """Whether the file exists and holds these samples."""
        return holds(self.path, self.fingerprint, self.samples)


def ensure(job: Job, pattern: str) -> Path:
    """Return a file that holds these samples, making what is missing with a progress bar.

    A file in datasets/ whose name fits the pattern and that has more samples of the same kind serves as well;
    its first ones are these.
    """
    if job.path.exists():
        if job.is_there:
            return job.path
    else:
        for path in sorted(datasets_dir().glob(pattern)):
            with suppress(UserError):  # a damaged file is no concern of this one
                if holds(path, job.fingerprint, job.samples):
                    return path
    return make(job)


def make(job: Job) -> Path:
    """Make the file of the job, or finish it, and return its path."""
    path = job.path
    if path.exists() and not job.is_there:
        raise UserError(
            f"{path} exists and holds other data than asked for; delete it or choose another name with --out."
        )
    parts = path.with_name(f".{path.stem}.{job.fingerprint}.parts")
    with _only_process(parts):
        if path.exists():
            say(f"{path} is complete already")
        else:
            _make_samples(job, parts)
            _assemble(job, parts)
            say(f"wrote {path}")
        shutil.rmtree(parts, ignore_errors=True)
    return path


def cpu_count() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _make_samples(job: Job, parts: Path) -> None:
    missing = [sample for sample in job.samples if not _is_whole(_part(parts, sample), job.shape)]
    with Progress(len(job.samples), job.label) as progress:
        progress.skip(len(job.samples) - len(missing))
        for count in _solved_batches(job, _batches(missing, job), parts):
            progress.advance(count)


def _batches(missing: list[int], job: Job) -> list[list[int]]:
    size = max(1, min(job.batch_size, math.ceil(len(missing) / job.workers)))
    return [missing[i : i + size] for i in range(0, len(missing), size)]


def _solved_batches(job: Job, batches: list[list[int]], parts: Path) -> Iterator[int]:
    """Solve and store all batches; give the size of each as it is done."""
    workers = min(job.workers, len(batches))
    if workers <= 1:
        for batch in batches:
            yield _solve_and_store(job.solve, batch, parts)
        return
    spawn = multiprocessing.get_context("spawn")  # a forked process cannot use torch's threads or CUDA
    with (
        worker_environment(),
        ProcessPoolExecutor(workers, mp_context=spawn, initializer=_end_with_parent) as pool,
    ):
        jobs = [pool.submit(_solve_and_store, job.solve, batch, parts) for batch in batches]
        try:
            for done in as_completed(jobs):
                yield done.result()
        except BrokenProcessPool as error:
            raise UserError(
                "a worker process was ended from outside, perhaps for want of memory; "
                "the same command continues, and --workers 1 needs the least."
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _solve_and_store(solve: Callable[[list[int]], Array], samples: list[int], parts: Path) -> int:
    for sample, values in zip(samples, solve(samples), strict=True):
        with atomic_path(_part(parts, sample)) as temporary:
            np.save(temporary, values)
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

    By default malloc returns every large array to the system, which hands it out again page by page: for a
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


@contextmanager
def reproducible_cpu() -> Iterator[None]:
    """One torch thread, so that sums are never split otherwise, and denormal numbers flushed to zero.

    In float32 strongly damped modes become denormal, which slows a CPU ten-fold.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


def _assemble(job: Job, parts: Path) -> None:
    for left_by_a_kill in job.path.parent.glob(f".{job.path.stem}.*.tmp{job.path.suffix}"):
        left_by_a_kill.unlink(missing_ok=True)
    job.write(np.load(_part(parts, sample)) for sample in job.samples)


def _part(parts: Path, sample: int) -> Path:
    return parts / f"{sample:06}.npy"


def _is_whole(part: Path, shape: tuple[int, ...]) -> bool:
    try:
        stored = np.load(part, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return False
    return bool(stored.shape == shape)


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
