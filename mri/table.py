"""`python -m mri.table`: train what both tables of the paper need, then make them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.cli import main
from lab.config import defaults, run_of_table
from lab.errors import UserError
from mri.config import EvalConfig, TableConfig, TrainConfig
from mri.models import BASELINE, MODELS


def table(config: TableConfig) -> None:
    """Train every method at every acceleration and number of scans, skipping finished runs, and evaluate."""
    from lab.paths import runs_dir
    from lab.runs import train_missing
    from mri.eval import report
    from mri.train import train

    wanted = list(planned(config))
    if not wanted:
        raise UserError(f"there is nothing to train for --models {','.join(config.models)}; add another.")
    if config.supervision != "full":
        _require_targets(config, wanted)
    runs = train_missing(wanted, train)
    folder = runs_dir() / TrainConfig.app / f"{config.prefix}-results"
    report(runs, folder, EvalConfig(threads=config.threads, plane=config.plane))


def planned(config: TableConfig) -> Iterator[TrainConfig]:
    """The options of every run: few-shot runs of the methods that learn, then methods x accelerations.

    A method with a preset of its own takes from it what the table was not told otherwise.
    """
    from lab.presets import read_preset

    usual = {} if config.preset == "auto" else read_preset(config.app, config.preset)
    models = [model for model in config.models if model != BASELINE]
    learned = [model for model in models if MODELS[model].learned]
    everywhere = [model for model in models if model not in config.few_shot_only]
    accs = {model: [None] if model in _mixed(config) else config.accs for model in models}
    few = [(model, accs[model][0], n) for n in config.few_shot for model in learned]
    full = [(model, acc, config.num_train) for model in everywhere for acc in accs[model]]
    for model, acc, n in dict.fromkeys([*few, *full]):
        own = MODELS[model].defaults.keys() - config.options.keys()
        options = {key: value for key, value in usual.items() if key in own}
        setting = own_preset(config, model, usual) | _accelerations(config, acc)
        for seed in range(config.seed, config.seed + config.seeds):
            at = "mixed" if acc is None else f"acc{acc:g}"
            name = f"{config.prefix}-{model}-{at}-n{n or 'all'}-seed{seed}"
            chosen = {**setting, "num_train": n, "seed": seed, "name": name}
            if not MODELS[model].learned:
                chosen |= {"supervision": "full", "scan": None}  # they are tuned on fully sampled images
            yield run_of_table(config, TrainConfig, model, options, **chosen)


def _require_targets(config: TableConfig, wanted: Sequence[TrainConfig]) -> None:
    """Refuse scans that nothing can be scored on, or classical methods tuned on, before anything is trained.

    Training alone does without fully sampled scans.
    """
    from data.scans.reader import load_scans
    from data.scans.skm_tea.format import ROOT_VARIABLE

    named = config.data or os.environ.get(ROOT_VARIABLE)
    if not named or not Path(named).is_dir():
        return  # synthetic knees are fully sampled, and training refuses a folder that is not there
    tested = {scan.scan_id for scan in load_scans(named, "test", plane=config.plane, skip_bad=True).scans}
    if config.scan is not None and config.scan not in tested:
        raise UserError(
            f"a table scores {config.scan}, but the fully sampled test scans in {named} are "
            f"{', '.join(sorted(tested))}; name one of them with --scan, or use mri.train and mri.reconstruct."
        )
    if tuned := list(dict.fromkeys(each.model for each in wanted if each.supervision == "full")):
        try:
            load_scans(named, "train", plane=config.plane, count=config.num_train, skip_bad=config.skip_bad)
        except UserError as error:
            raise UserError(
                f"--models {','.join(tuned)} need fully sampled training scans to be tuned on; leave them out. {error}"
            ) from error


def own_preset(config: TableConfig, model: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """Options of training from the preset of one model, but for those that the table was given."""
    from lab.paths import presets_dir
    from lab.presets import read_preset

    if not (presets_dir(config.app) / model / f"{config.preset}.yaml").is_file():
        return {}
    values = read_preset(f"{config.app}/{model}", config.preset)
    unsaid = defaults(TrainConfig, model) | dict(usual)
    return {key: value for key, value in values.items() if getattr(config, key) == unsaid[key]}


def _mixed(config: TableConfig) -> list[str]:
    """Methods with one run for all accelerations; none where there is but one to train for."""
    several = len(config.mixed_acc or config.accs) > 1
    return [model for model in config.mixed if MODELS[model].learned and several]


def _accelerations(config: TableConfig, acc: float | None) -> dict[str, Any]:
    """What a run is trained for: one acceleration, or all, validated at one in the middle."""
    if acc is not None:
        return {"acc": acc, "mixed_acc": None}
    return {"acc": config.accs[len(config.accs) // 2], "mixed_acc": config.mixed_acc or config.accs}


if __name__ == "__main__":
    main(table)
