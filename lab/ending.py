"""How a command ends: what went wrong as one sentence, and the exit status that shells and schedulers expect."""

import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from lab.errors import Stopped, UserError

REFUSED = 2
"""A mistake of a person, a damaged file, a full disk."""
OUT_OF_MEMORY = re.compile(
    r"can't allocate memory|can't start new thread|out of memory|DataLoader worker .*(exited|killed)"
)
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


def end_with_parent(*_: object) -> None:
    """Let this process end when the one that started it has, even if that was killed and could not tell.

    It takes and ignores the number that a DataLoader gives its workers: left alone, those can wait for ever to deliver.
    """

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_waiting: list[Callable[[], None]] = []
"""What signals that are held would have done."""


@contextmanager
def held_signals() -> Iterator[None]:
    """Within the block Ctrl-C and SIGTERM wait for `let_signals_through` or for its end.

    For libraries that call back into Python and cannot bear an exception there.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}

    def hold(number: int, frame: FrameType | None) -> None:
        _waiting.append(lambda: held[signal.Signals(number)](number, frame))

    try:
        for number in held:
            signal.signal(number, hold)
    except ValueError:  # not in the main thread, where none arrives
        yield
        return
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        let_signals_through()


def let_signals_through() -> None:
    """Let a signal that waits do what it would have done."""
    if _waiting:
        first = _waiting[0]
        _waiting.clear()
        first()


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
