"""`python -m pde.table`: train every model of a problem under one budget, and write the table."""

from collections.abc import Iterator, Mapping
from typing import Any

from lab.cli import main
from lab.config import run_of_table
from pde.config import EvalConfig, TableConfig, TrainConfig
from pde.models import MODELS, comparison
from pde.models.options import CARRIED, designed


def table(config: TableConfig) -> None:
    """Train what has not been trained yet, one run after another, then evaluate all; repeat it to continue."""
    from lab.paths import runs_dir
    from lab.runs import train_missing
    from pde.eval import report
    from pde.scores import score_runs
    from pde.train import train

    runs = train_missing(list(planned(config)), train)
    folder = runs_dir() / TrainConfig.app / f"{config.prefix}-results"
    evaluation = EvalConfig(threads=config.threads)
    report(score_runs(runs, evaluation, folder / "scores"), evaluation, folder)


def planned(config: TableConfig) -> Iterator[TrainConfig]:
    """The options of all runs of the table, case by case where there are several."""
    problem = config.about
    values = [None] if problem.case is None else [{problem.case: value} for value in config.nus]
    for case in values:
        named = problem.name if case is None else problem.case_name(*case.values())
        for row, (model, options, others) in _rows(config).items():
            for seed in range(config.seeds if config.ablation or row in config.seeded_models else 1):
                own = {
                    "seed": seed,
                    "name": f"{config.prefix}-{named}-{row}-seed{seed}",
                    **(case or {}),
                    **others,
                }
                yield run_of_table(config, TrainConfig, model, _fitting(config, model, options), **own)


def _fitting(config: TableConfig, model: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a row, without those of the table that say how fields are carried if its own are not."""
    known = MODELS[model].defaults
    asked = {**known, **{key: value for key, value in config.options.items() if key in known}, **options}
    if designed(asked, config.about.design).get("transport"):
        return options
    return {**{option.name: None for option in CARRIED if option.name in known}, **options}


Row = tuple[str, Mapping[str, Any], Mapping[str, Any]]

WITHOUT: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "symmetries": ({}, {"symmetries": False}),
    "coordinates": ({"coordinates": "plain"}, {}),
    "transport": ({"transport": False}, {}),
    "filter": ({"filter": "none"}, {}),
    "shear": ({"shear": False}, {}),
    "cells": ({"cells": False}, {}),
    "learning": ({"learn_x": "fixed", "learn_y": "fixed"}, {}),
}
"""What an ablation leaves out, and the options of the model and of the run that do it."""


def _rows(config: TableConfig) -> dict[str, Row]:
    """The problem's rows, or one of them without each of its parts: {name: (model, its options, those of the run)}."""
    rows = comparison(config.about.geometry, config.about.static)
    if not config.ablation:
        return {row: (*rows[row], {}) for row in config.models}
    row = config.models[0]
    model, chosen = rows[row]
    whole = run_of_table(config, TrainConfig, model, chosen)
    found: dict[str, Row] = {row: (model, chosen, {})}
    for name, (options, others) in WITHOUT.items():
        has_part = options.keys() <= whole.options.keys() and (
            any((whole.options[key] or False) != value for key, value in options.items())
            or any(getattr(whole, key) != value for key, value in others.items())
        )
        # Without transport there is no filter to leave out.
        if has_part and (name != "filter" or whole.options["transport"]):
            found[f"{row}-without-{name}"] = (model, {**chosen, **options}, others)
    return found


if __name__ == "__main__":
    main(table)
