"""Running the demonstration as a person would: in a folder of its own, as a command."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import paths


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, where runs/ and datasets/ appear."""
    monkeypatch.chdir(tmp_path)
    for name in ("MONARCH_DATA", "MONARCH_RUNS", "MONARCH_RUN_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert paths.runs_dir() == Path("runs")
    return tmp_path


@pytest.fixture
def start(workplace: Path, root: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start `python -m lab.demo.train ...` in the workplace, with its output captured."""
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}

    def start_command(*words: str, module: str = "lab.demo.train") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", module, *words]
        return subprocess.Popen(
            command,
            cwd=workplace,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    return start_command
