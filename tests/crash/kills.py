"""Kills and full disks at every file operation: what is left behind, the same command finishes, byte for byte.

A killed process leaves what it had written until then. The next one finds it; so two kills that leave the same files
need only one continuation. A full disk stays full until the process ends, which says so in one sentence.
"""

import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

from lab.files import read_json
from tests.crash.commands import COMMANDS, Command, set_up
from tests.crash.trial import COUNT, FULL, KILL, REFUSED, Outcome, arm, in_child, operations, run_command

CHUNK = 10
"""Operations that one task tries."""
UNCOMPARED = ("log.txt", ".lock")
"""A log tells what happened, kills included; locks are empty."""
_MANIFEST = re.compile("<pre>.*?</pre>", re.DOTALL)
_PID = re.compile(r"\.\d+\.tmp")


def plan(command: Command, inputs: Path, work: Path) -> tuple[int, str]:
    """Run the command undisturbed and keep what it leaves; how many operations that took, or what went wrong."""
    place = work / "place"
    set_up(command, inputs, place)
    counted = work / "counted"

    def run() -> int:
        arm(place, COUNT, 0)
        status = run_command(command.words.format(inputs=inputs))
        counted.write_text(str(operations()))
        return status

    done = in_child(run, place, seconds=command.seconds)
    if done.status != 0:
        return 0, f"{command.name}: {done.complaint or done.output}"
    reference = _reference(command, inputs)
    shutil.rmtree(reference, ignore_errors=True)
    shutil.copytree(place, reference)
    return int(counted.read_text()), ""


def try_operations(name: str, numbers: range, what: int, inputs: Path, work: Path) -> list[str]:
    """Disturb the command at each of these operations; returns what went wrong."""
    command = next(command for command in COMMANDS if command.name == name)
    place, reference = work / "place", _reference(command, inputs)
    wrong: list[str] = []
    continued: set[str] = set()
    for number in numbers:
        set_up(command, inputs, place)
        done = in_child(
            lambda n=number: _disturbed(command, n, what, inputs, place), place, seconds=command.seconds
        )
        kind = "killed at" if what == KILL else "disk full from"
        where = f"{name}, {kind} operation {number}"
        if what == KILL and done.status != -9:
            wrong.append(f"{where}: not killed: {done.complaint or done.last_line}")
        if what == FULL and (done.complaint or done.status not in (0, REFUSED)):
            wrong.append(f"{where}: {done.complaint or done.last_line}")
        if what == FULL and done.status == 0 and (unlike := differences(place, reference)):
            wrong.append(f"{where}: success was claimed, but {unlike[0]}")
        state = digest(place)
        if state not in continued:
            continued.add(state)
            wrong += [
                f"{where}, then continued: {each}" for each in _continued(command, inputs, place, reference)
            ]
    return wrong


def _disturbed(command: Command, number: int, what: int, inputs: Path, place: Path) -> int:
    arm(place, what, number)
    return run_command(command.words.format(inputs=inputs))


def _continued(command: Command, inputs: Path, place: Path, reference: Path) -> list[str]:
    again: Outcome = in_child(
        lambda: run_command(command.words.format(inputs=inputs)), place, seconds=command.seconds
    )
    if again.status != 0:
        return [again.complaint or again.last_line]
    return differences(place, reference)[:1]


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
    """Names and contents below a folder, but for the process numbers in temporary names."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*"), key=lambda path: _PID.sub(".tmp", str(path))):
        found.update(_PID.sub(".tmp", str(path.relative_to(folder))).encode())
        found.update(path.read_bytes() if path.is_file() else b"/")
    return found.hexdigest()


def _reference(command: Command, inputs: Path) -> Path:
    return inputs.parent / "references" / command.name.replace(" ", "-")
