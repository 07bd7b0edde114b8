"""Memory: how much is free, refusing work that needs more before it begins, and keeping what was once got."""

import ctypes
import os
import sys
from pathlib import Path

from lab.console import say
from lab.errors import UserError

GIGABYTE = 1e9
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of settings in glibc's malloc.h."""


def available() -> int | None:
    """Bytes that a program can still have; None where the system does not tell.

    What is free of the machine's memory, or of the part that a container may use.
    """
    free = _meminfo()
    limit, used = (_number(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    if limit is not None and used is not None:
        free = limit - used if free is None else min(free, limit - used)
    if free is None and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return free


def require(needed: float, what: str, remedy: str) -> None:
    """Say how much memory something needs; refuse it, with the remedy, if the machine has less."""
    free = available()
    there = "" if free is None else f"; {size(free)} is free"
    if free is not None and needed > free:
        raise UserError(
            f"{what} needs about {size(needed)} of memory, but only {size(free)} is free; {remedy}."
        )
    say(f"memory: {what} needs about {size(needed)}{there}")


def keep_freed() -> None:
    """Have the process keep the memory that short-lived arrays leave, for those that follow.

    By default malloc returns large arrays to the system, which hands them out again page by page, filled with zeros:
    a fifth of the time of training on a CPU, and up to half of a solver's. Arrays beyond 256 MB are still returned.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries than glibc may have none
        mallopt(MMAP_THRESHOLD, 256 * 2**20)
        mallopt(TRIM_THRESHOLD, 2**31 - 1)


def size(count: float) -> str:
    """Bytes as people write them.

    >>> size(2.5e9), size(3e6)
    ('2.5 GB', '3 MB')
    """
    return f"{count / GIGABYTE:.1f} GB" if count >= GIGABYTE else f"{max(1, round(count / 1e6))} MB"


def _meminfo() -> int | None:
    info = Path("/proc/meminfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable"):
                return 1024 * int(line.split()[1])
    return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return None
