"""One trial: something done in a forked child, with limits, while the parent watches.

The parent has imported everything beforehand, so that a trial costs what the work costs. Where a C compiler is at
hand the parent runs with `interpose.c` loaded; a child can then count its file operations below a folder, or stop at
each of them for the parent to look at the files.
"""

import ctypes
import faulthandler
import gc
import os
import resource
import runpy
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from lab.errors import UserError

ROOT = Path(__file__).parents[2]
REFUSED, CRASHED = 2, 70
"""Exit statuses: a sentence for the user; a traceback."""
FORGOTTEN = ("MONARCH_DATA", "MONARCH_RUNS", "MONARCH_RUN_NAME", "SKM_TEA_ROOT", "LD_PRELOAD")
"""What a trial does not inherit."""


@dataclass(frozen=True)
class Outcome:
    """How a child ended: exit status (negative: the signal), what it printed, and for how long it ran."""

    status: int
    output: str
    seconds: float
    too_slow: bool = False

    @property
    def complaint(self) -> str:
        """What is wrong with an answer that should be a success or one sentence; empty if nothing is."""
        if self.too_slow:
            return f"no answer within {self.seconds:.0f} s"
        if self.status < 0:
            return f"died of {signal.Signals(-self.status).name}: {self.last_line}"
        if "Traceback (most recent call last)" in self.output or self.status not in (0, REFUSED):
            return f"status {self.status}: {self.last_line}"
        if (
            self.status == REFUSED
            and sum(line.startswith("error: ") for line in self.output.splitlines()) != 1
        ):
            return f"not one sentence: {self.output[-300:]!r}"
        return ""

    @property
    def last_line(self) -> str:
        """The last thing it said."""
        return (self.output.strip().splitlines() or [""])[-1][-300:]


@contextmanager
def interposed() -> Iterator[bool]:
    """Processes started within the block have interpose.c loaded; whether that is possible here."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        yield False
        return
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "interpose.so"
        source = Path(__file__).with_name("interpose.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
        before = os.environ.get("LD_PRELOAD")
        os.environ["LD_PRELOAD"] = str(library)
        try:
            yield True
        finally:
            os.environ.pop("LD_PRELOAD") if before is None else os.environ.update(LD_PRELOAD=before)


def preload(modules: tuple[str, ...]) -> None:
    """Import what the trials need, and freeze what would make two equal runs differ."""
    import torch

    from lab import manifest

    for name in FORGOTTEN:
        os.environ.pop(name, None)
    os.environ["COLUMNS"] = "100"
    for name in modules:
        import_module(name)
    torch.set_num_threads(1)
    torch.export.export(
        torch.nn.Linear(1, 1), (torch.zeros(1, 1),)
    )  # imports for seconds when it is first called
    manifest.git_state = lambda: None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.collect()
    gc.freeze()  # so that a child's collections do not copy the parent's pages


def in_child(
    work: Callable[[], Any],
    place: Path,
    *,
    seconds: float = 120,
    memory: int | None = None,
    on_stop: Callable[[], None] | None = None,
) -> Outcome:
    """Do the work in a forked child whose current folder is `place`.

    `memory` bounds what it may allocate, in bytes; `on_stop` is called whenever it stops itself, and then it goes on.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as said:
        pid = os.fork()
        if pid == 0:
            _be_the_child(work, place, said.fileno(), memory)
        too_slow = on_stop is None and not _ends_within(pid, seconds)
        if too_slow:
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(_waited_for(pid, on_stop))
        said.seek(0)
        output = said.read().decode(errors="replace")
    return Outcome(status, output, time.monotonic() - started, too_slow)


def _waited_for(pid: int, on_stop: Callable[[], None] | None) -> int:
    while True:
        status = os.waitpid(pid, os.WUNTRACED)[1]
        if on_stop is None or not os.WIFSTOPPED(status):
            return status
        try:
            on_stop()
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise
        os.kill(pid, signal.SIGCONT)


def _ends_within(pid: int, seconds: float) -> bool:
    watched = os.pidfd_open(pid)
    try:
        return bool(select.select([watched], [], [], seconds)[0])
    finally:
        os.close(watched)


def _be_the_child(work: Callable[[], Any], place: Path, said: int, memory: int | None) -> None:
    status = CRASHED
    try:
        os.dup2(said, 1)
        os.dup2(said, 2)
        faulthandler.disable()
        os.chdir(place)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory is not None:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
        status = work() or 0
    except UserError as error:
        os.write(2, f"error: {error}\n".encode(errors="replace"))
        status = REFUSED
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else CRASHED if end.code else 0
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="replace"))
    finally:
        sys.stdout.flush()
        os._exit(status)


def count_operations(folder: Path, journal: Path) -> None:
    """From now on, list file operations below the folder in the journal: what, where, where to, with tabs between."""
    ctypes.CDLL(None).crash_count(os.fsencode(folder.resolve()), os.fsencode(journal))


def stop_at_operations(
    folder: Path, mail: Path, output: Path, every: int, term_every: int, seconds: int
) -> None:
    """From now on, stop at every n-th file operation below the folder and let it go wrong in a copy of this process.

    The letter in `mail` says what the files show: `k` what a kill would leave now, `f` what a copy left that found the
    disk full from here on, `t` one that got SIGTERM, at every so many operations. Then come the number of the operation
    and how the copy ended, in the system's terms. What it printed is in `output`.
    """
    paths = map(os.fsencode, (folder.resolve(), mail, output))
    ctypes.CDLL(None).crash_watch(*paths, every, term_every, seconds)


class Started:
    """A command that runs in a forked child, in a process group of its own; used as a `subprocess.Popen`."""

    def __init__(self, words: str, place: Path, **variables: str) -> None:
        self.returncode: int | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.environ.update(variables)
            _be_the_child(lambda: run_command(words, frozen=False), place, self._said.fileno(), None)

    def poll(self) -> int | None:
        """The exit status, if it has ended."""
        if self.returncode is None and _ends_within(self.pid, 0):
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        """As from a terminal or a scheduler."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout: float = 600) -> tuple[str, None]:
        """Wait for its end; what it said."""
        if self.returncode is None and not _ends_within(self.pid, timeout):
            raise subprocess.TimeoutExpired("the command", timeout)
        self.poll()
        with self._said:
            self._said.seek(0)
            return self._said.read().decode(errors="replace"), None


def run_command(words: str, frozen: bool = True) -> int:
    """`python -m` with these words, here; returns the exit status. Times are part of what a run writes: they stand."""
    module, *arguments = shlex.split(words)
    if frozen:
        time.monotonic = lambda: 0.0  # type: ignore[assignment]
        time.process_time = lambda: 0.0  # type: ignore[assignment]
        stamp = time.strftime("%Y", time.gmtime(0))
        time.strftime = lambda *_: stamp  # type: ignore[assignment]
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1 if end.code else 0
    return 0
