"""All the runs that two tables need, one after the other, each resumable."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from lab.console import say
from lab.files import read_json
from lab.paths import runs_dir
from mri.config import LEARNED, EvalConfig, TableConfig, TrainConfig
from mri.evaluation import evaluate
from mri.sources import find_source
from mri.training import train


def campaign(config: TableConfig) -> None:
    """Train what is missing, then evaluate the runs of this table."""
    source = find_source(config)
    prefix = config.name or f"table-{config.preset}"
    plan = list(planned(config, prefix))
    for number, options in enumerate(plan, start=1):
        name = options["name"]
        if _is_finished(runs_dir() / "mri" / name):
            say(f"run {number}/{len(plan)}, {name}: finished before")
            continue
        say(f"run {number}/{len(plan)}, {name}")
        train(TrainConfig(**options), source)
    evaluate(
        EvalConfig(
            only=f"{prefix}-", out=str(runs_dir() / "mri" / f"{prefix}-results"), threads=config.threads
        )
    )


def planned(config: TableConfig, prefix: str) -> Iterator[dict[str, Any]]:
    """The options of every run: few-shot runs of the methods that learn, then accelerations x methods.

    As in the paper, the U-Net stands in the few-shot table only. Of SENSE there is nothing to train.
    """
    shared = {each.name: getattr(config, each.name) for each in fields(TrainConfig)}
    learned = [method for method in config.methods if method in LEARNED]
    wanted: list[tuple[str, float, int | None]] = [
        (method, config.accs[0], n) for n in config.few_shot for method in learned
    ]
    others = [method for method in config.methods if method not in ("sense", "unet")]
    wanted += [(method, acc, config.n_train) for acc in config.accs for method in others]
    for method, acc, n in dict.fromkeys(wanted):
        name = f"{prefix}-{method}-acc{acc:g}-n{n or 'all'}-seed{config.seed}"
        yield shared | {"model": method, "acc": acc, "n_train": n, "name": name, "resume": True}


def _is_finished(folder: Path) -> bool:
    manifest = folder / "manifest.json"
    return manifest.is_file() and read_json(manifest).get("status") == "finished"
