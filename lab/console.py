"""Where the suite speaks to people: one Rich console, silent on all processes but the first."""

import io
import os
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lab.files import unwritable

if TYPE_CHECKING:
    from rich.console import Console

_log_files: list[Path] = []


def is_first_process() -> bool:
    """True on the process that may print and write files (rank 0 under DDP, torchrun or SLURM)."""
    ranks = (os.environ.get(name) for name in ("RANK", "SLURM_PROCID", "NODE_RANK", "LOCAL_RANK"))
    return all(int(rank) == 0 for rank in ranks if rank)


@cache
def console() -> "Console":
    """Return the console that commands print to; it is quiet on every process but the first."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):  # where the locale is C, letters that it lacks become ?
        sys.stdout.reconfigure(errors="replace")
    return Console(quiet=not is_first_process(), soft_wrap=True, highlight=False)


def say(message: str) -> None:
    """Print one message as it is (square brackets are not markup) and note it in the open logs."""
    console().print(message, markup=False)
    note(message)


def say_written(folder: Path, paths: Sequence[Path]) -> None:
    """Say what was written: a few files by name, many by their number and the folder."""
    if len(paths) <= 3:
        say("wrote " + ", ".join(str(path) for path in paths))
    else:
        say(f"wrote {len(paths)} files to {folder}")


def note(message: str) -> None:
    """Write one message to the open logs only, with the time."""
    if is_first_process():
        for path in _log_files:
            try:
                with path.open("a", encoding="utf-8") as file:
                    file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {message}\n")
            except OSError as error:
                raise unwritable(path, error) from error


def open_log(path: Path) -> None:
    """From now on, keep what is said in this file too."""
    if path not in _log_files:
        _log_files.append(path)


def close_log(path: Path) -> None:
    """Stop keeping what is said in this file."""
    if path in _log_files:
        _log_files.remove(path)
