"""Finished runs, gathered for a table."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import UserError
from lab.files import read_json
from lab.paths import runs_dir


@dataclass
class FinishedRun:
    """A run that reached its last epoch: its folder, options and manifest."""

    folder: Path
    config: dict[str, Any]
    manifest: dict[str, Any]

    @property
    def weights(self) -> Path:
        """Its best weights."""
        return self.folder / "weights.safetensors"

    def metrics(self) -> list[dict[str, float]]:
        """The rows of metrics.csv, as numbers."""
        with (self.folder / "metrics.csv").open(encoding="utf-8") as file:
            return [
                {key: float(value) for key, value in row.items() if value} for row in csv.DictReader(file)
            ]


def finished_runs(app: str, folder: Path | None = None) -> list[FinishedRun]:
    """All finished runs of an application, by folder name; none at all is a `UserError`."""
    parent = folder or runs_dir() / app
    runs = list(_finished(parent))
    if not runs:
        raise UserError(
            f"there is no finished run in {parent}; train one first with: python -m {_trainer(app)}"
        )
    return runs


def _finished(parent: Path) -> Iterator[FinishedRun]:
    import yaml

    for path in sorted(parent.glob("*/manifest.json")):
        manifest = read_json(path)
        if manifest.get("status") == "finished":
            config = yaml.safe_load((path.parent / "config.yaml").read_text(encoding="utf-8"))
            yield FinishedRun(path.parent, config, manifest)


def _trainer(app: str) -> str:
    return "lab.demo" if app == "demo" else f"{app}.train"
