"""The campaign: its parts shared out among processes, and one table of what was tried, what held and what failed."""

import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lab.checks import above, at_least
from lab.console import say
from lab.errors import UserError
from lab.files import write_text
from lab.progress import Progress
from lab.table import Column as C
from lab.table import Table
from tests.crash import kills, processes, readers, surroundings
from tests.crash.commands import COMMANDS, LIBRARIES, make_inputs
from tests.crash.specimens import uncovered
from tests.crash.trial import interposed, preload

PARTS = {
    "kills": "SIGKILL at every file operation of every command, then the same command again: the same bytes",
    "full-disk": "the disk is full from every file operation on: one sentence; then as above",
    "sigterm": "SIGTERM at file operations of every command: the usual status, nothing left; then as above",
    "flushes": "power cuts: the contents of every file are flushed before it gets its name, its folder afterwards",
    "together": "two processes at once, and workers whose parent is killed",
    "signals": "real processes: SIGTERM in long work, Ctrl-C once and twice",
    "surroundings": "folders, names, variables, terminals, memory that are not as usual",
    "malformed": "files made from schemas gone wrong: read or refused in one sentence, soon",
    "fuzz": "mutations of valid files: the same, and no other numbers where there are checksums",
}
AT_ONCE = 25
"""Malformed or mutated files of one task."""
OPERATIONS = (*kills.PARTS.values(), "flushes")
"""Parts that concern the file operations of commands; they are tried together."""
STATES = 5
"""States that one task continues from."""


@dataclass(frozen=True)
class CampaignConfig:
    """The campaign."""

    minutes: float = 10.0
    """Time for the fuzzer."""
    every: int = 1
    """Try every n-th operation and malformed file only, for a shorter campaign."""
    only: list[str] = field(default_factory=list)
    """Parts to run, all when not given: kills, full-disk, sigterm and flushes (these four come together), together,
    signals, surroundings, malformed, fuzz."""
    jobs: int = 2
    """Processes."""
    seed: int = 0
    """Seed of the fuzzer."""
    out: Path | None = None
    """Write the table to this Markdown file too."""

    def __post_init__(self) -> None:
        at_least(self, 1, "every", "jobs")
        above(self, 0, "minutes")
        for name in self.only:
            if name not in PARTS:
                raise UserError(f"--only: there is no part {name!r}; choose from {', '.join(PARTS)}.")


@dataclass
class Ledger:
    """What was tried of each part, and what failed."""

    tried: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def enter(self, part: str, tried: int, wrong: Sequence[str]) -> None:
        """Add the outcome of some trials."""
        self.tried[part] += tried
        self.failed[part] += wrong
        for each in wrong:
            say(f"FAILED {each}")

    def table(self, caption: str) -> Table:
        """Tried, held, failed."""
        columns = [C("part"), C("what"), C("tried"), C("held"), C("failed")]
        table = Table(columns, caption=caption)
        rows = [(part, self.tried[part], len(self.failed[part])) for part in PARTS if part in self.tried]
        for part, tried, failed in rows:
            table.add(part, PARTS[part], tried, tried - failed, failed)
        tried, failed = (sum(row[i] for row in rows) for i in (1, 2))
        table.add("all", "", tried, tried - failed, failed)
        return table


Task = tuple[str, int, Callable[..., list[str]], tuple[Any, ...]]
"""A part, how many trials, the function that makes them and returns what failed, its arguments."""


def campaign(config: CampaignConfig) -> None:
    """Try to break the suite, and say what held."""
    parts = [part for part in PARTS if part in (config.only or PARTS)]
    started, ledger = time.monotonic(), Ledger()
    with tempfile.TemporaryDirectory(prefix="crash-") as folder, interposed() as counting:
        base = Path(folder).resolve()
        with ProcessPoolExecutor(config.jobs, get_context("spawn"), _begin, (base,)) as pool:
            say("making the inputs")
            pool.submit(make_inputs, base / "inputs").result()
            if not counting:
                say(f"{', '.join(OPERATIONS)} need Linux and a C compiler: skipped")
                parts = [part for part in parts if part not in OPERATIONS]
            _run(pool, list(_tasks(pool, parts, config, base)), ledger)
            if "fuzz" in parts:
                _fuzz(pool, config, base, ledger)
    words = f"{(time.monotonic() - started) / 60:.0f} minutes, --minutes {config.minutes:g} --every {config.every}"
    table = ledger.table(f"The campaign: {words}")
    table.print()
    if config.out is not None:
        write_text(config.out, table.markdown())
    if any(ledger.failed.values()):
        sys.exit(1)


def _begin(base: Path) -> None:
    preload(("torch", "torch.export", *LIBRARIES))
    _work(base).mkdir()


def _work(base: Path) -> Path:
    """The folder of this worker."""
    return base / f"worker-{os.getpid()}"


def _tasks(
    pool: ProcessPoolExecutor, parts: Sequence[str], config: CampaignConfig, base: Path
) -> Iterator[Task]:
    inputs = base / "inputs"
    for (
        part,
        function,
    ) in ONE_BY_ONE.items():  # these mostly wait: first, so that they do so beside the others
        if part in parts:
            yield part, 0, _listed, (function, inputs, base)
    if set(OPERATIONS) & set(parts):
        say("letting things go wrong at the file operations of every command")
        disturbed = [
            (command, pool.submit(_disturb, command.name, config.every, base)) for command in COMMANDS
        ]
        for command, future in disturbed:
            found = future.result()
            for part, tried in found.tried.items():
                yield part, tried, _nothing, (found.failed.get(part, []),)
            states = list(found.states.items())[:: command.every]
            for begin in range(0, len(states), STATES):
                yield "kills", 0, _continue, (command.name, dict(states[begin : begin + STATES]), base)
    if "malformed" in parts:
        missing = pool.submit(_uncovered, base).result()
        yield "malformed", 0, _nothing, ([f"no specimen of {name}" for name in missing],)
        for name, number in pool.submit(_count, base).result().items():
            for numbers in _chunks(range(0, number, config.every), AT_ONCE):
                yield "malformed", 0, _malformed, (name, numbers, base)


def _chunks(numbers: range, size: int) -> Iterator[range]:
    for begin in range(0, len(numbers), size):
        yield numbers[begin : begin + size]


def _run(pool: ProcessPoolExecutor, tasks: Sequence[Task], ledger: Ledger) -> None:
    futures = {pool.submit(function, *arguments): (part, tried) for part, tried, function, arguments in tasks}
    with Progress(len(futures), "campaign", unit="task", interval=30) as progress:
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                _enter(ledger, *futures[future], future)
                progress.advance(1, failed=sum(map(len, ledger.failed.values())))


def _enter(ledger: Ledger, part: str, tried: int, future: "Future[list[str]]") -> None:
    lines = future.result()
    if part in LISTED:  # each line is a try; one that held is empty
        tried = len(lines)
    ledger.enter(part, tried, [line for line in lines if line])


def _fuzz(pool: ProcessPoolExecutor, config: CampaignConfig, base: Path, ledger: Ledger) -> None:
    begun, rounds = time.monotonic(), readers.rounds(config.seed, AT_ONCE)
    running: set[Future[list[str]]] = set()
    with Progress(round(60 * config.minutes), "fuzzing", unit="second", interval=30) as progress:
        while running or time.monotonic() - begun < 60 * config.minutes:
            while len(running) < 2 * config.jobs and time.monotonic() - begun < 60 * config.minutes:
                name, numbers = next(rounds)
                running.add(pool.submit(_mutations, name, numbers, config.seed, base))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                _enter(ledger, "fuzz", 0, future)
            passed = min(time.monotonic() - begun, 60 * config.minutes)
            progress.advance(
                round(passed) - progress.done, tried=ledger.tried["fuzz"], failed=len(ledger.failed["fuzz"])
            )


def _disturb(name: str, every: int, base: Path) -> kills.Found:
    return kills.disturb(name, base / "inputs", _work(base), every)


def _continue(name: str, states: dict[str, tuple[str, str]], base: Path) -> list[str]:
    return [
        f"{where}, then continued: {wrong}"
        for state, (_, where) in states.items()
        for wrong in kills.continue_from(name, state, base / "inputs", _work(base))
    ]


def _malformed(name: str, numbers: range, base: Path) -> list[str]:
    return readers.try_malformed(name, numbers, base / "inputs", _work(base))


def _mutations(name: str, numbers: range, seed: int, base: Path) -> list[str]:
    return readers.try_mutations(name, numbers, seed, base / "inputs", _work(base))


def _count(base: Path) -> dict[str, int]:
    return readers.count_malformed(base / "inputs", _work(base))


def _uncovered(base: Path) -> list[str]:
    folder = base / "uncovered"
    found = uncovered(base / "inputs", folder)
    shutil.rmtree(folder)
    return found


def _nothing(wrong: list[str]) -> list[str]:
    return wrong


def _listed(
    function: Callable[[Path, Path], Iterator[tuple[str, str]]], inputs: Path, base: Path
) -> list[str]:
    return [f"{name}: {said}" if said else "" for name, said in function(inputs, _work(base))]


def _together(inputs: Path, work: Path) -> Iterator[tuple[str, str]]:
    yield from processes.two_at_once(inputs, work)
    yield from processes.others_at_once(inputs, work)
    yield from processes.killed_parents(inputs, work)


ONE_BY_ONE = {"together": _together, "signals": processes.stopped, "surroundings": surroundings.tries}
"""Parts whose tries have names of their own."""
LISTED = {*ONE_BY_ONE, "malformed", "fuzz"}
"""Parts that return a line for each try."""
