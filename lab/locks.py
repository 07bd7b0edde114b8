"""One process at a time: locks that the operating system releases when their holder ends, however it ends."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from lab.files import make_folder, unwritable


def try_lock(path: Path) -> BaseFileLock | None:
    """Take the lock file `path`, or return None at once where another process holds it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "folder" / ".lock"
    >>> lock = try_lock(path)
    >>> lock.is_locked, try_lock(path) is None
    (True, True)
    >>> lock.release()
    """
    try:
        make_folder(path.parent)
        lock = FileLock(path, is_singleton=False)
        lock.acquire(timeout=0)
    except Timeout:
        return None
    except OSError as error:
        raise unwritable(path.parent, error) from error
    return lock


@contextmanager
def only_process(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file `path` within the block; where another process has it, call `on_wait` and wait for it."""
    lock = try_lock(path)
    if lock is None:
        on_wait()
        lock = FileLock(path, is_singleton=False)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
