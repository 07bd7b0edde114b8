"""How a command ends: what went wrong as one sentence, and the exit status that shells and schedulers expect."""

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from lab.errors import Stopped, UserError

REFUSED = 2
"""A mistake of a person, a damaged file, a full disk."""
OUT_OF_MEMORY = re.compile(r"can't allocate memory|out of memory|DataLoader worker .*(exited|killed)")
"""What torch says when it has not got enough, or when the system has ended a process that loads data."""


def status_of(command: Callable[[], Any]) -> int:
    """Call the command and return its exit status; only a fault of the program itself is raised."""
    try:
        with _unwound_by_sigterm():
            command()
    except UserError as error:
        return _refused(str(error))
    except (KeyboardInterrupt, Stopped) as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would only disturb the end
        status = error.status if isinstance(error, Stopped) else 128 + signal.SIGINT
        print("terminated" if status == 128 + signal.SIGTERM else "interrupted", file=sys.stderr)  # noqa: T201
        return status
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE if hasattr(signal, "SIGPIPE") else 1
    except OSError as error:  # of the system, not of the program: a full disk, a folder that may not be read
        return _refused(f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}.")
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or OUT_OF_MEMORY.search(str(error)):
            return _refused(
                "there is too little memory; take a smaller --batch-size, --num-workers 0 or another machine."
            )
        raise
    return 0


def _refused(sentence: str) -> int:
    print(f"error: {sentence}", file=sys.stderr)  # noqa: T201
    return REFUSED


@contextmanager
def _unwound_by_sigterm() -> Iterator[None]:
    """Within the block SIGTERM unwinds as Ctrl-C does, so that temporary files and worker processes are removed."""

    def unwind(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends at once
        raise Stopped(number)

    try:
        before = signal.signal(signal.SIGTERM, unwind)
    except ValueError:  # not in the main thread, where signals cannot be caught
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
