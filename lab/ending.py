"""How a command ends: what went wrong as one sentence, and the exit status that shells and schedulers expect."""

import _thread
import gc
import multiprocessing
import multiprocessing.queues
import os
import re
import signal
import sys
import threading
import traceback
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
        with _unwound_by_signals():
            command()
    except BaseException as error:
        return _status_after(error)
    return 0


def _status_after(error: BaseException) -> int:
    if (status := _stopped_by(error)) is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would only disturb the end
        print("terminated" if status == 128 + signal.SIGTERM else "interrupted", file=sys.stderr)  # noqa: T201
        return status
    if isinstance(error, UserError):
        return _refused(str(error))
    if isinstance(error, BrokenPipeError):  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE if hasattr(signal, "SIGPIPE") else 1
    if isinstance(
        error, OSError
    ):  # of the system, not of the program: a full disk, a folder that may not be read
        return _refused(f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}.")
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and OUT_OF_MEMORY.search(str(error))
    ):
        status = _refused(
            "there is too little memory; take a smaller --batch-size, --num-workers 0 or another machine."
        )
        _kill_workers(error)
        return status
    raise error


def _stopped_by(error: BaseException | None) -> int | None:
    """The exit status if a signal is behind it all: what it raised may have come out of a library as another error."""
    while error is not None:
        if isinstance(error, Stopped):
            return error.status
        if isinstance(error, KeyboardInterrupt):
            return 128 + signal.SIGINT
        error = error.__cause__ or error.__context__
    return None


def _refused(sentence: str) -> int:
    print(f"error: {sentence}", file=sys.stderr)  # noqa: T201
    return REFUSED


def _kill_workers(error: BaseException) -> None:
    """End the processes that load data, and drop what belongs to them without a word.

    A loader ends its workers with the help of threads, and can wait for ever where there is no memory for one.
    """
    for worker in multiprocessing.active_children():
        worker.kill()
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        traceback.clear_frames(error.__traceback__)
        gc.collect()
    finally:
        sys.unraisablehook = before


def begin_loading(_: int) -> None:
    """For the workers of a DataLoader, whose numbers it is given: end rather than wait, or be waited for, for ever.

    A worker whose parent was killed would wait to deliver. One that cannot hand over a batch, for want of memory, would
    drop it, say so at length and go on, and the parent would wait for that batch.
    """
    queue: Any = multiprocessing.queues.Queue
    start = queue._start_thread

    def start_or_end(self: Any) -> None:
        try:
            start(self)
        except RuntimeError:  # no memory for a thread
            os._exit(1)

    queue._start_thread = start_or_end
    queue._on_queue_feeder_error = staticmethod(lambda *_: os._exit(1))
    end_with_parent()


def end_with_parent() -> None:
    """Let this process end when the one that started it has, even if that was killed and could not tell."""

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
def _unwound_by_signals() -> Iterator[None]:
    """Within the block SIGTERM unwinds as Ctrl-C does, so that temporary files and worker processes are removed.

    What a handler raises is lost where Python can only report it: in finalisers and callbacks of weak references. The
    signal is then sent once more, a moment later.
    """

    def unwind(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends at once
        raise Stopped(number)

    def heard_in_vain(unraisable: "sys.UnraisableHookArgs") -> None:
        status = _stopped_by(unraisable.exc_value)
        if status is None:
            report(unraisable)
            return
        if status == 128 + signal.SIGTERM:
            signal.signal(signal.SIGTERM, unwind)
        again.append(threading.Timer(0.01, _signal_main_thread, (status - 128,)))
        again[-1].start()

    again: list[threading.Timer] = []
    try:
        before = signal.signal(signal.SIGTERM, unwind)
    except ValueError:  # not in the main thread, where signals cannot be caught
        yield
        return
    report, sys.unraisablehook = sys.unraisablehook, heard_in_vain
    try:
        yield
    finally:
        for timer in again:
            timer.cancel()
        sys.unraisablehook = report
        signal.signal(signal.SIGTERM, before)


def _signal_main_thread(number: int) -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)  # also where it sleeps
    else:
        _thread.interrupt_main(signal.Signals(number))
