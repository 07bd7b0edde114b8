"""Power cuts: is everything flushed in the order that lets a file be whole or absent afterwards?

A journal of a command's file operations shows it. A file is written under a temporary name, flushed, renamed, and its
folder is flushed; of a new folder, the one that it is in.
"""

from collections.abc import Iterator
from pathlib import Path

from lab.files import is_temporary

AT_ONCE = ("log.txt", ".lock")
"""Files that are written under their own name: a log grows line by line, locks are empty."""


def unflushed(journal: str, place: Path) -> Iterator[str]:
    """What a power cut could tear or lose, in words; nothing where all is well."""
    dirty: set[Path] = set()
    nameless: set[Path] = set()  # folders with a name in them that the disk may not know
    for line in journal.splitlines():
        what, *paths = line.split("\t")
        path, to = (place / each for each in paths)
        if what == "open":
            if not is_temporary(path) and not path.name.endswith(AT_ONCE):
                yield f"{path.name} is written under its own name"
        elif what in ("fsync", "fdatasync"):
            dirty.discard(path)
            nameless.discard(path)
        elif what == "rename":
            if path in dirty:
                yield f"{to.name} got its name before its content was flushed"
            yield from _unnamed(nameless)
            nameless.add(to.parent)
        elif what == "mkdir":
            nameless.add(path.parent)
        elif what == "remove":
            dirty.discard(path)
        elif what != "chmod":
            dirty.add(path)
    yield from _unnamed(nameless)


def _unnamed(folders: set[Path]) -> Iterator[str]:
    yield from (f"the folder {folder.name} was not flushed after a name in it was new" for folder in folders)
    folders.clear()
