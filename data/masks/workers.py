"""Many Poisson masks from a few worker processes, each under a time limit.

A mask whose seed gives none, or does not in time, is tried again with the next seed. Its seeds depend on its
name alone; so a mask is the same on every machine and in whatever order it is made.
"""

import base64
import hashlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from data.masks.generate import Mask
from data.masks.spec import MaskSpec
from lab.errors import UserError

COMMAND = (sys.executable, "-m", "data.masks.worker")
ATTEMPTS = 32
START_LIMIT = 300.0
TIME_LIMIT = 300.0
MASKS_PER_START = 16
"""Starting a process costs about as much as making so many masks."""


@dataclass(frozen=True)
class SeededMask:
    """A mask, the name it was asked for, and the seed that made it (attempt 0 unless earlier ones failed)."""

    name: str
    mask: Mask
    seed: int
    attempt: int


def stable_seed(*parts: object) -> int:
    """31 bits that depend on the text of the parts only, on every machine and Python version.

    >>> stable_seed("scan-MTR_001", 0), stable_seed("scan-MTR_001", 1)
    (1712562061, 25233034)
    """
    text = "|".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") >> 1


class Worker:
    """A worker process that is killed and started anew when a job takes too long."""

    def __init__(self, command: Sequence[str] = COMMAND, time_limit: float = TIME_LIMIT) -> None:
        self._command, self._time_limit = command, time_limit
        self._process: subprocess.Popen[str] | None = None
        self._busy = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        """End the process, even in the middle of a job that another thread waits for."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()
        with self._busy:
            self._stop()

    def make(self, spec: MaskSpec, seed: int) -> Mask | str:
        """The mask of this seed, or a few words on why there is none."""
        job = {"grid": spec.grid, "acceleration": spec.acceleration, "calibration": spec.calibration_region}
        with self._busy:
            if self._closed:
                raise RuntimeError("this worker was closed")
            if self._process is None:
                self._start()
            answer = self._ask(json.dumps(job | {"seed": seed}), self._time_limit)
            if answer is None:
                self._stop()
                return f"it took more than {self._time_limit:g} s or crashed"
        if "error" in answer:
            return str(answer["error"])
        bits = np.frombuffer(base64.b64decode(answer["mask"]), np.uint8)
        return np.unpackbits(bits, count=spec.grid[0] * spec.grid[1]).reshape(spec.grid).astype(bool)

    def _start(self) -> None:
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        with tempfile.TemporaryFile("w+") as errors:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            )
            if self._ask(None, START_LIMIT) is None:
                self._stop()
                errors.seek(0)
                reason = (errors.read().strip().splitlines() or ["no message"])[-1]
                raise UserError(f"the process that makes Poisson masks did not start ({reason}).")

    def _ask(self, line: str | None, time_limit: float) -> Any:
        """Send a line, wait for the answer; None when the process ends or is killed before it answers."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(time_limit, process.kill)
        timer.start()
        try:
            if line is not None:
                process.stdin.write(line + "\n")
                process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            return None
        finally:
            timer.cancel()
        return json.loads(answer) if answer.endswith("\n") else None

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        self._process.wait()
        self._process = None


def poisson_masks(
    spec: MaskSpec,
    names: Sequence[str],
    *,
    num_workers: int | None = None,
    wanted: Callable[[str], bool] = lambda name: True,
    new_worker: Callable[[], Worker] = Worker,
) -> Iterator[SeededMask]:
    """Make the masks of these names, in the order in which they come out.

    `wanted` is asked just before a mask is begun; names it declines are left out.
    """
    count = num_workers or min(os.cpu_count() or 1, -(-len(names) // MASKS_PER_START))
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()

    def make(name: str) -> SeededMask | None:
        if not wanted(name):
            return None
        worker = idle.get()
        try:
            return first_success(worker, spec, name)
        finally:
            idle.put(worker)

    # Left in reverse: no new jobs, then the processes die, then the threads that waited for them end.
    with ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(max(count, 1)))
        for _ in range(count):
            idle.put(stack.enter_context(new_worker()))
        stack.callback(executor.shutdown, wait=False, cancel_futures=True)
        for future in as_completed([executor.submit(make, name) for name in names]):
            if (mask := future.result()) is not None:
                yield mask


def first_success(worker: Worker, spec: MaskSpec, name: str) -> SeededMask:
    """The mask of the first of the name's seeds that gives one."""
    for attempt in range(ATTEMPTS):
        seed = stable_seed(name, attempt)
        mask = worker.make(spec, seed)
        if not isinstance(mask, str):
            return SeededMask(name, mask, seed, attempt)
    ky, kz = spec.grid
    raise UserError(
        f"no Poisson mask of acceleration {spec.acceleration:g} was found on a {ky} x {kz} grid with "
        f"{ATTEMPTS} seeds (the last one: {mask}); ask for another acceleration or a larger grid."
    )
