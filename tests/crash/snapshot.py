"""What is in a folder, put back after somebody changed it, while a process has files open there."""

import os
import shutil
from pathlib import Path


class Snapshot:
    """Names, contents and permissions below a folder.

    Files keep their inodes, by links in the folder `links`, so that what a process has open stays what has the name.
    """

    def __init__(self, folder: Path, links: Path) -> None:
        self.folder, self.links = folder, links
        shutil.rmtree(links, ignore_errors=True)
        links.mkdir()
        self.files: dict[Path, tuple[bytes, int]] = {}
        self.folders: list[Path] = []
        for number, path in enumerate(sorted(folder.rglob("*"))):
            if path.is_dir():
                self.folders.append(path)
            else:
                self.files[path] = path.read_bytes(), path.stat().st_mode
                os.link(path, links / str(number))
        self._linked = dict(
            zip(self.files, sorted(links.iterdir(), key=lambda link: int(link.name)), strict=True)
        )

    def restore(self) -> None:
        """Let everything be as it was."""
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir() and path not in self.folders:
                path.rmdir()
            elif not path.is_dir() and path not in self.files:
                path.unlink()
        for path in self.folders:
            path.mkdir(exist_ok=True)
        for path, (content, mode) in self.files.items():
            link = self._linked[path]
            if not (path.exists() and path.samefile(link)):
                path.unlink(missing_ok=True)
                os.link(link, path)
            if path.read_bytes() != content:
                with path.open("r+b") as file:
                    file.write(content)
                    file.truncate()
            path.chmod(mode)
