"""Kills, full disks and SIGTERM at every file operation: what is left behind, the same command finishes, byte for byte.

The command runs once and stops at every operation. What is in its folder then is what a kill would leave there. A copy
of the process goes on with a full disk, another one with SIGTERM; each has to end well, and its traces are removed
before the command goes on. From everything that was left the command is then started again, undisturbed. Of equal
states one is enough, and temporary files count by their names alone, for nobody ever reads them.
"""

import hashlib
import os
import re
import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.files import is_temporary, read_json
from tests.crash.commands import COMMANDS, Command, set_up
from tests.crash.flushes import unflushed
from tests.crash.snapshot import Snapshot
from tests.crash.trial import Outcome, count_operations, in_child, run_command, stop_at_operations

PARTS = {"k": "kills", "f": "full-disk", "t": "sigterm"}
"""Parts of the campaign, by the letters that name what went wrong."""
WORDS = {"k": "killed at", "f": "disk full from", "t": "SIGTERM at"}
TERM_EVERY = 5
"""SIGTERM unwinds through the same code wherever it comes: it need not be tried at every operation."""
TERMINATED = 128 + 15
ALARM = 14
UNCOMPARED = ("log.txt", ".lock")
"""A log tells what happened, kills included; locks are empty."""
_MANIFEST = re.compile("<pre tabindex=0>.*?</pre>", re.DOTALL)
_PID = re.compile(r"\.\d+\.tmp")


@dataclass
class Found:
    """What was tried of a command, what failed, and what was left behind: digests of states, with words for each."""

    tried: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    states: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By digest: the part of the campaign, and words."""

    def plain(self) -> "Found":
        """The same, to be sent to another process."""
        return Found(dict(self.tried), dict(self.failed), self.states)


def disturb(name: str, inputs: Path, work: Path, every: int = 1) -> Found:
    """Let everything go wrong at every n-th file operation of a command."""
    command = _named(name)
    found = Found()
    found.tried["flushes"] = 1
    place = work / "place"
    set_up(command, inputs, place)
    journal = work / "journal"

    def run() -> int:
        count_operations(place, journal)
        return run_command(command.words.format(inputs=inputs))

    done = in_child(run, place, seconds=command.seconds)
    if done.status != 0:
        found.failed["flushes"].append(f"{name}: {done.complaint or done.output}")
        return found.plain()
    found.failed["flushes"] += [f"{name}: {each}" for each in list(unflushed(journal.read_text(), place))[:1]]
    reference = _reference(command, inputs)
    shutil.rmtree(reference, ignore_errors=True)
    shutil.copytree(place, reference)
    _watch(command, found, inputs, work, every)
    return found.plain()


def _watch(command: Command, found: Found, inputs: Path, work: Path, every: int) -> None:
    place, mail, output = work / "place", work / "mail", work / "output"
    reference, states = _reference(command, inputs), _states(command, inputs)
    set_up(command, inputs, place)
    before: list[Snapshot] = []

    def run() -> int:
        stop_at_operations(place, mail, output, every, TERM_EVERY, int(command.seconds))
        return run_command(command.words.format(inputs=inputs))

    def look() -> None:
        letter, number, status = mail.read_text().split()
        part, where = PARTS[letter], f"{command.name}, {WORDS[letter]} operation {number}"
        found.tried[part] += 1
        if letter != "k":
            code = os.waitstatus_to_exitcode(int(status))
            done = Outcome(code, output.read_text(errors="replace"), command.seconds, code == -ALARM)
            found.failed[part] += [f"{where}: {each}" for each in _at_once(letter, done, place, reference)]
        state = digest(place)
        if state not in found.states:
            found.states[state] = part, where
            shutil.copytree(place, states / state)
        if letter == "k":
            before[:] = [Snapshot(place, work / "links")]
        else:
            before[0].restore()

    done = in_child(run, place, on_stop=look)
    unlike = differences(place, reference)
    if done.status != 0 or unlike:
        found.failed["kills"].append(f"{command.name}, watched: {done.complaint or unlike}")


def _at_once(letter: str, done: Outcome, place: Path, reference: Path) -> list[str]:
    """What is wrong before anything is continued."""
    if letter == "t":
        left = [path.name for path in place.rglob(".*.tmp*")]
        fine = done.status in (0, TERMINATED) and "Traceback" not in done.output and not left
        return [] if fine else [f"status {done.status}, {left} left: {done.last_line}"]
    if done.complaint:
        return [done.complaint]
    unlike = differences(place, reference) if done.status == 0 else []
    return [f"success was claimed, but {unlike[0]}"] if unlike else []


def continue_from(name: str, state: str, inputs: Path, work: Path) -> list[str]:
    """Start the command again where something was left behind; returns what went wrong."""
    command, place = _named(name), work / "place"
    shutil.rmtree(place, ignore_errors=True)
    shutil.move(_states(command, inputs) / state, place)
    words = command.words.format(inputs=inputs)
    again = in_child(lambda: run_command(words), place, seconds=command.seconds)
    if again.status != 0:
        return [again.complaint or again.last_line]
    return differences(place, _reference(command, inputs))[:1]


def differences(found: Path, wanted: Path) -> list[str]:
    """Files of two folders that are not the same."""
    names = {folder: {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} for folder in
             (found, wanted)}  # fmt: skip
    compared = {
        folder: {name for name in names[folder] if Path(name).name not in UNCOMPARED} for folder in names
    }
    wrong = [f"{name} is missing" for name in sorted(compared[wanted] - compared[found])]
    wrong += [f"{name} is too much" for name in sorted(compared[found] - compared[wanted])]
    both = sorted(compared[found] & compared[wanted])
    return wrong + [f"{name} differs" for name in both if not _equal(found / name, wanted / name)]


def _equal(one: Path, other: Path) -> bool:
    if one.read_bytes() == other.read_bytes():
        return True
    if one.name == "manifest.json":  # tells how often a run was continued
        return _without_sessions(one) == _without_sessions(other)
    if one.suffix == ".html":  # shows the manifests
        return _MANIFEST.sub("", one.read_text()) == _MANIFEST.sub("", other.read_text())
    return one.suffix == ".ckpt" and _same_content(one, other)  # torch writes the name of the file into it


def _without_sessions(path: Path) -> dict[str, Any]:
    return {key: value for key, value in read_json(path).items() if key != "resumed"}


def _same_content(one: Path, other: Path) -> bool:
    import torch

    first, second = (torch.load(path, weights_only=True) for path in (one, other))
    return _same(first, second)


def _same(one: Any, other: Any) -> bool:
    import torch

    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(_same(one[k], other[k]) for k in one)
        )
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def digest(folder: Path) -> str:
    """Names and contents below a folder; of temporary files and logs the names, without numbers of processes."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*"), key=lambda path: _PID.sub(".tmp", str(path))):
        found.update(_PID.sub(".tmp", str(path.relative_to(folder))).encode())
        if not is_temporary(path) and path.name not in UNCOMPARED:
            found.update(path.read_bytes() if path.is_file() else b"/")
    return found.hexdigest()


def _named(name: str) -> Command:
    return next(command for command in COMMANDS if command.name == name)


def _reference(command: Command, inputs: Path) -> Path:
    return inputs.parent / "references" / command.name.replace(" ", "-")


def _states(command: Command, inputs: Path) -> Path:
    return inputs.parent / "states" / command.name.replace(" ", "-")
