"""What a run was: command, code, versions, hardware, seed, data, time. Enough to repeat it."""

import os
import platform
import shlex
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lab.files import check_kinds, read_table

PACKAGES = (
    "monarch-science",
    "torch",
    "lightning",
    "numpy",
    "scipy",
    "h5py",
    "sigpy",
    "scikit-image",
    "torch-harmonics",
)


KINDS = {
    "command": str,
    "seed": int,
    "wall_seconds": float,
    "hardware": dict,
    "data": dict | None,
    "steps": dict,
    "resumed": list,
}
"""Entries that are read again, by the run itself, tables and reports."""
HARDWARE = {"processor": str, "torch_threads": int, "accelerators": list}
"""The same of the hardware."""


def read(path: Path) -> dict[str, Any]:
    """The manifest in a file; one with impossible entries is refused."""
    found = read_table(path)
    check_kinds(path, found, KINDS)
    check_kinds(path, found.get("hardware", {}), HARDWARE)
    return found


def describe(seed: int, data: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything that is known when a run begins; `data` names the data set and holds its fingerprint."""
    return {
        "command": command_line(),
        "status": "running",
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "wall_seconds": 0.0,
        "seed": seed,
        "data": data,
        "git": git_state(),
        "versions": versions(),
        "hardware": hardware(),
    }


def command_line() -> str:
    """The command as a person would type it again: `python -m package.module --flag value`."""
    return shlex.join([*program(), *sys.argv[1:]])


def program() -> list[str]:
    """What is running, without its options: `python -m package.module`."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:
        return ["python", "-m", spec.name.removesuffix(".__main__")]
    return ["python", os.path.relpath(sys.argv[0]) if sys.argv[0] else "-c"]


def git_state() -> dict[str, Any] | None:
    """Commit of the suite's own checkout and whether it had changes; None for an installed copy."""
    root = Path(__file__).parent.parent

    def git(*words: str) -> str:
        return subprocess.check_output(
            ["git", *words], cwd=root, stderr=subprocess.DEVNULL, text=True
        ).strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return None
        return {
            "commit": git("rev-parse", "HEAD"),
            "dirty": bool(git("status", "--porcelain", "--untracked-files=no")),
        }
    except (OSError, subprocess.CalledProcessError):
        return None


def versions() -> dict[str, str]:
    """Python and the packages that can change a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """Processor, cores, threads, memory and accelerators."""
    import torch

    accelerators = []
    if torch.cuda.is_available():
        accelerators = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "memory_gb": round(pages / 2**30, 1),
        "accelerators": accelerators,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
