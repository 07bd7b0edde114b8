"""Work in several processes, and data sets that are made by them: sample by sample, resumable at any moment.

Every finished sample is a small file of its own in a folder beside the target, written under a temporary name
and renamed. A killed run therefore leaves whole samples only, and the same command makes the others. When all
are there they are assembled into one file, again under a temporary name. Nothing in a sample depends on which
process made it, or with which others.
"""

import math
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lab.console import say
from lab.ending import end_with_parent
from lab.errors import UserError
from lab.files import atomic_path
from lab.locks import only_process
from lab.memory import keep_freed
from lab.progress import Progress

Array = npt.NDArray[np.float32]
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Job:
    """The samples of one file, and how to make them.

    `solve` turns the numbers of some samples into an array of them, (samples, ...); it is sent to other
    processes, so it is a module's function or a `functools.partial` of one. `write` puts all samples, given one
    by one in the given shape, into the file; `is_there` says whether the file holds them.
    """

    path: Path
    fingerprint: str
    label: str
    samples: range
    shape: tuple[int, ...]
    solve: Callable[[list[int]], Array]
    write: Callable[[Iterable[Array]], None]
    is_there: Callable[[], bool]
    batch_size: int
    workers: int


def make(job: Job) -> Path:
    """Make the file of the job, or finish it, and return its path."""
    _refuse_other_data(job)  # before waiting for whoever may be making it
    parts = job.path.with_name(f".{job.path.stem}.{job.fingerprint}.parts")
    lock = job.path.with_name(f".{job.path.stem}.lock")  # of the path: others may be making other data there
    with only_process(lock, lambda: say(f"another process is making {job.path}; waiting for it")):
        _refuse_other_data(job)  # that process may have been asked for other data, or fewer samples
        if job.path.exists():
            say(f"{job.path} is complete already")
        else:
            _make_samples(job, parts)
            _assemble(job, parts)
            say(f"wrote {job.path}")
        shutil.rmtree(parts, ignore_errors=True)
        with suppress(OSError):  # Windows keeps a file that is open
            lock.unlink()
    return job.path


def in_processes(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    workers: int,
) -> Iterator[Result]:
    """The results for all tasks, in the order in which they are done: here, or in several processes."""
    workers = min(workers, len(tasks))
    if workers <= 1:
        keep_freed()
        yield from map(function, tasks)
        return
    # Spawned, not forked: a forked process inherits the locks of torch and HDF5 in whatever state they are.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawn, _begin) as pool:
        futures = [pool.submit(function, task) for task in tasks]
        try:
            for done in as_completed(futures):
                yield done.result()
        except BrokenProcessPool as error:
            raise UserError(
                "a worker process was ended from outside, perhaps for want of memory; "
                "the same command continues, and a single process needs the least."
            ) from error
        except BaseException:  # also Ctrl-C and SIGTERM, which only this process may have got
            for worker in list(pool._processes.values()):
                worker.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def in_groups(samples: Sequence[int], size: int, solve: Callable[[range], Iterable[Array]]) -> Array:
    """Samples that are solved `size` at a time, always with the same others: sample i with those of equal i // size.

    The last bits of a product or a Fourier transform can depend on how many others are computed with it, and a sample
    must not depend on which others were asked for.
    """
    made: dict[int, Array] = {}
    for group in sorted({sample // size for sample in samples}):
        members = range(group * size, (group + 1) * size)
        made.update(zip(members, solve(members), strict=True))
    return np.stack([made[sample] for sample in samples])


def cpu_count() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread, of torch and of NumPy's products: the last bits of a sum depend on how it is shared out."""
    import torch
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def reproducible_cpu() -> Iterator[None]:
    """One thread, and denormal numbers flushed to zero.

    In float32 strongly damped modes become denormal, which slows a CPU ten-fold. A training that makes its data first
    flushes them as well, and goes on as it began.
    """
    import torch

    before = float(torch.full((1,), 1e-40) * 1) == 0  # nothing else tells
    torch.set_flush_denormal(True)
    try:
        with one_thread():
            yield
    finally:
        torch.set_flush_denormal(before)


def _begin() -> None:
    """Ctrl-C ends workers without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent()
    keep_freed()


def _refuse_other_data(job: Job) -> None:
    if job.path.exists() and not job.is_there():
        raise UserError(
            f"{job.path} exists and holds other data than asked for, or fewer samples; "
            "delete it or choose another name with --out."
        )


def _make_samples(job: Job, parts: Path) -> None:
    missing = [sample for sample in job.samples if not _is_whole(_part(parts, sample), job.shape)]
    batches = [list(batch) for _, batch in groupby(missing, key=lambda sample: sample // job.batch_size)]
    with Progress(len(job.samples), job.label) as progress:
        progress.skip(len(job.samples) - len(missing))
        for count in in_processes(partial(_solve_and_store, job.solve, parts), batches, job.workers):
            progress.advance(count)


def _solve_and_store(solve: Callable[[list[int]], Array], parts: Path, samples: list[int]) -> int:
    for sample, values in zip(samples, solve(samples), strict=True):
        with atomic_path(_part(parts, sample)) as temporary:
            np.save(temporary, np.ascontiguousarray(values))  # number by number otherwise
    return len(samples)


def _assemble(job: Job, parts: Path) -> None:
    # Whoever holds the lock is the only one to write here.
    for left_by_a_kill in job.path.parent.glob(f".{job.path.stem}.*.tmp{job.path.suffix}"):
        left_by_a_kill.unlink(missing_ok=True)
    job.write(np.load(_part(parts, sample)).reshape(job.shape) for sample in job.samples)


def _part(parts: Path, sample: int) -> Path:
    return parts / f"{sample:06}.npy"


def _is_whole(part: Path, shape: tuple[int, ...]) -> bool:
    """Whether the part has all numbers of a sample; a single field may have been stored without its axis."""
    try:
        return bool(np.load(part, mmap_mode="r").size == math.prod(shape))
    except (OSError, ValueError, EOFError):
        return False
