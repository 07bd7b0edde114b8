"""Where generated data, runs and presets are."""

import os
from pathlib import Path


def datasets_dir() -> Path:
    """`datasets/` in the current folder, or wherever MONARCH_DATA points: generated data and caches."""
    return Path(os.environ.get("MONARCH_DATA") or "datasets")


def runs_dir() -> Path:
    """`runs/` in the current folder, or wherever MONARCH_RUNS points: one folder per run."""
    return Path(os.environ.get("MONARCH_RUNS") or "runs")


def presets_dir(app: str) -> Path:
    """The folder with an application's presets; it is installed beside the packages."""
    return Path(__file__).parent.parent / "configs" / app
