"""Several processes, and signals: two at once, killed parents, Ctrl-C, SIGTERM.

Commands are forked from a process that has imported everything, so that they begin at once; some are started as people
start them.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lab.files import read_json
from tests.crash.commands import COMMANDS, PDE, Command, set_up
from tests.crash.kills import differences
from tests.crash.trial import FORGOTTEN, ROOT, Started

SLOW_FLOW = "data.navier_stokes --nu 1e-5 --num-samples 4 --grid 256 --final-time 20"
SLOW_KNEES = "data.knee --subjects 4 --size laptop --out knees"
LONG_DEMO = "lab.demo.train --preset smoke --epochs 2000 --name long --resume"
QUICK = ("data.darcy", "data.masks", "data.knee", "lab.demo.train", "lab.demo.table", "lab.demo.eval", "text.train",
         "pde.export")  # fmt: skip
"""Commands that are started twice at once."""


def environment(**changes: str) -> dict[str, str]:
    """That of a command: the caller's, without the suite's own variables."""
    kept = {name: value for name, value in os.environ.items() if name not in FORGOTTEN}
    return {**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "100", **changes}


def start_afresh(words: str, place: Path, **changes: str) -> "subprocess.Popen[str]":
    """`python -m` and these words in a folder, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", *shlex.split(words)], cwd=place, env=environment(**changes), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def group(leader: int) -> list[int]:
    """Processes of a group that are alive."""
    alive = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            alive.append(int(stat.parent.name))
    return alive


def wait_until(what: Callable[[], object], seconds: float = 120) -> bool:
    """Whether it came true in time."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if what():
            return True
        time.sleep(0.05)
    return False


def fresh(work: Path) -> Path:
    """An empty folder."""
    place = work / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def two_at_once(inputs: Path, work: Path) -> Iterator[tuple[str, str]]:
    """The same command twice: both end well, or the second is refused; what is left is what one leaves."""
    for command in (each for each in COMMANDS if each.name in QUICK):
        place, reference = work / "place", work / "alone"
        for folder, times in ((reference, 1), (place, 2)):
            set_up(command, inputs, folder)
            processes = [Started(command.words.format(inputs=inputs), folder) for _ in range(times)]
            outputs = [process.communicate(timeout=300)[0] for process in processes]
            statuses = sorted(process.returncode or 0 for process in processes)
        shutil.rmtree(reference / "runs", ignore_errors=True)  # with times in it
        fine = statuses in ([0, 0], [0, 2]) and not any("Traceback" in output for output in outputs)
        runs = place / "runs"
        whole = not runs.exists() or read_json(next(runs.glob("*/*/manifest.json")))["status"] == "finished"
        shutil.rmtree(runs, ignore_errors=True)
        unlike = differences(place, reference)
        said = "" if fine and whole and not unlike else f"{statuses}, {unlike[:1]}: {outputs[-1][-300:]}"
        yield f"{command.name}, twice at once", said


def others_at_once(inputs: Path, work: Path) -> Iterator[tuple[str, str]]:
    """Other data, or more of it, for the same path: refused when the first is done, and never taken for the same."""
    slow = "data.darcy --num-samples 30 --resolution 60 --workers 1 --out x.h5"
    for change in ("--num-samples 31", "--resolution 30"):
        place = fresh(work)
        first = Started(slow, place)
        begun = wait_until(lambda place=place: (place / ".x.lock").exists())
        second = Started(f"{slow} {change}", place)
        said = second.communicate(timeout=300)[0]
        first.communicate(timeout=300)
        right = begun and (first.returncode, second.returncode) == (0, 2) and "holds other data" in said
        yield f"data.darcy, at once with {change}", "" if right else f"{second.returncode}: {said[-300:]}"


def killed_parents(inputs: Path, work: Path) -> Iterator[tuple[str, str]]:
    """A parent is killed while its workers work: none of them outlives it."""
    tries = {
        f"{SLOW_FLOW} --workers 2 --out x.h5": 3,
        f"{SLOW_KNEES} --jobs 2": 3,
        f"{LONG_DEMO} --num-workers 2 --epoch-steps 100000": 3,
    }
    for words, least in tries.items():
        for number in (signal.SIGKILL, signal.SIGTERM):
            process = Started(words, fresh(work))
            begun = wait_until(lambda process=process, least=least: len(group(process.pid)) >= least)
            time.sleep(2)  # until the workers work
            process.send_signal(number)
            gone = wait_until(lambda process=process: not group(process.pid), 60)
            said = "" if begun and gone else f"alive: {group(process.pid)}, workers seen: {begun}"
            for pid in group(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.communicate()
            yield f"{words.split()[0]} with workers, {number.name} to the parent", said


STOPPABLE = {
    "lab.demo.train": (LONG_DEMO, "runs/demo/long/metrics.csv"),
    "data.navier_stokes": (f"{SLOW_FLOW} --workers 1 --out x.h5", ".x.lock"),
    "data.knee": (f"{SLOW_KNEES} --jobs 1", "datasets/masks"),
    "data.masks": ("data.masks --count 5000 --ky 416 --kz 80", "datasets/masks/*/*.npz"),
    "pde.train": (f"pde.train {PDE} --epochs 3000 --name long", "runs/pde/long/metrics.csv"),
    "mri.train": ("mri.train --preset smoke --data {inputs}/knees --epochs 3000 --name long",
                  "runs/mri/long/metrics.csv"),
    "text.train": ("text.train --preset smoke --data {inputs}/text.txt --epochs 3000 --name long",
                   "runs/text/long/metrics.csv"),
    "lab.demo.table": ("lab.demo.table --preset smoke --epochs 2000", "runs/demo/*/metrics.csv"),
}  # fmt: skip
"""Commands that run for long, and what shows that they work."""


def stopped(inputs: Path, work: Path) -> Iterator[tuple[str, str]]:
    """SIGTERM in the middle of long work, and in commands that only read; Ctrl-C once and twice, as at a terminal.

    Other commands get SIGTERM at their file operations (kills.py).
    """
    for words, sign in STOPPABLE.values():
        yield _stop(words.format(inputs=inputs), sign, [signal.SIGTERM], work, Started)
    for name in ("lab.demo.train", "data.navier_stokes"):
        words, sign = STOPPABLE[name]
        yield _stop(words, sign, [signal.SIGINT], work, start_afresh)
        yield _stop(words, sign, [signal.SIGINT, signal.SIGINT], work, start_afresh)
    for command in (each for each in COMMANDS if each.name.endswith(("models", "info"))):
        yield _stop_at_start(command, inputs, work)


def _stop(
    words: str, sign: str, signals: list[signal.Signals], work: Path, start: Callable[[str, Path], Any]
) -> tuple[str, str]:
    place = fresh(work)
    process = start(words, place)
    begun = wait_until(lambda: next(place.glob(sign), None) or process.poll() is not None)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.02)
    try:
        output = process.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = f"it went on: {process.communicate()[0]}"
    left = [path.name for path in place.rglob(".*.tmp*") if "parts" not in str(path)]
    # A second Ctrl-C may come when the first has done its work.
    right = begun and process.returncode == 128 + signals[0] and "Traceback" not in output and not left
    name = f"{words.split()[0]}, {' and '.join(each.name for each in signals)}"
    return name, "" if right else f"status {process.returncode}, {left} left: {output[-300:]}"


def _stop_at_start(command: Command, inputs: Path, work: Path) -> tuple[str, str]:
    set_up(command, inputs, work / "place")
    process = Started(command.words.format(inputs=inputs), work / "place")
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=120)[0]
    right = process.returncode in (0, 143, -15) and "Traceback" not in output
    return f"{command.name}, SIGTERM", "" if right else f"status {process.returncode}: {output[-300:]}"
