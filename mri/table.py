"""`python -m mri.table`: train what both tables of the paper need, then make them."""

import sys
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from lab.cli import run
from mri.config import EvalConfig, TableConfig, TrainConfig
from mri.models import BASELINE, MODELS


def table(config: TableConfig) -> None:
    """Train every method at every acceleration and number of scans, skipping finished runs, and evaluate."""
    from lab.errors import UserError
    from lab.paths import runs_dir
    from lab.runs import train_missing
    from mri.eval import report
    from mri.train import train

    wanted = list(planned(config))
    if not wanted:
        raise UserError(f"there is nothing to train for --models {','.join(config.models)}; add another.")
    runs = train_missing(wanted, train)
    report(
        runs, runs_dir() / TrainConfig.app / f"{config.prefix}-results", EvalConfig(threads=config.threads)
    )


def planned(config: TableConfig) -> Iterator[TrainConfig]:
    """The options of every run: few-shot runs of the methods that learn, then accelerations x methods."""
    from lab.presets import read_preset

    usual = {} if config.preset == "auto" else read_preset(config.app, config.preset)
    shared = {entry.name: getattr(config, entry.name) for entry in fields(TrainConfig)}
    models = [model for model in config.models if model != BASELINE]
    learned = [model for model in models if MODELS[model].learned]
    everywhere = [model for model in models if model not in config.few_shot_only]
    few = [(model, config.accs[0], n) for n in config.few_shot for model in learned]
    full = [(model, acc, config.num_train) for acc in config.accs for model in everywhere]
    for model, acc, n in dict.fromkeys([*few, *full]):
        own = MODELS[model].defaults
        options = {key: value for key, value in (usual | dict(config.options)).items() if key in own}
        for seed in range(config.seed, config.seed + config.seeds):
            name = f"{config.prefix}-{model}-acc{acc:g}-n{n or 'all'}-seed{seed}"
            changed: dict[str, Any] = {
                "model": model,
                "options": options,
                "acc": acc,
                "num_train": n,
                "seed": seed,
            }
            yield TrainConfig(**{**shared, **changed, "name": name, "resume": True})


if __name__ == "__main__":
    sys.exit(run("python -m mri.table", {"": table}))
