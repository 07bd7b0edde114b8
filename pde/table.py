"""`python -m pde.table`: train every model of a problem under one budget, and write the table."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.cli import main
from lab.config import run_of_table
from pde.config import EvalConfig, TableConfig, TrainConfig
from pde.models import MODELS, comparison
from pde.models.options import CARRIED, designed
from pde.problems import OWN


def table(config: TableConfig) -> None:
    """Train what has not been trained yet, one run after another, then evaluate all; repeat it to continue."""
    from lab.paths import runs_dir
    from lab.runs import train_missing
    from pde.eval import report
    from pde.scores import score_runs
    from pde.train import train

    _refuse_what_cannot_be_built(config)
    runs = train_missing(list(planned(config)), train)
    folder = runs_dir() / TrainConfig.app / f"{config.prefix}-results"
    evaluation = EvalConfig(threads=config.threads)
    report(score_runs(runs, evaluation, folder / "scores"), evaluation, folder)


def planned(config: TableConfig) -> Iterator[TrainConfig]:
    """The options of all runs of the table, case by case where there are several."""
    problem = config.about
    for case in _cases(config):
        named = problem.name if case is None else problem.case_name(*case.values())
        if problem.name == OWN:  # each file has runs of its own
            named = f"{named}-{Path(str(config.data)).stem}"
        for row, (model, options, others) in _rows(config).items():
            for seed in range(config.seeds if config.ablation or row in config.seeded_models else 1):
                own = {
                    "seed": seed,
                    "name": f"{config.prefix}-{named}-{row}-seed{seed}",
                    **(case or {}),
                    **others,
                }
                yield run_of_table(config, TrainConfig, model, _fitting(config, model, options), **own)


def _cases(config: TableConfig) -> list[Mapping[str, Any] | None]:
    """The options in which the columns of the table differ; nothing where there is one column."""
    case = config.about.case
    return [None] if case is None else [{case: value} for value in config.nus]


def _refuse_what_cannot_be_built(config: TableConfig) -> None:
    """Refuse rows that do not suit the points or the fields of the data: now, not after the others were trained."""
    from lab.errors import UserError
    from pde.models import build
    from pde.sources import Split

    problem, case = config.about, _cases(config)[0] or {}
    runs = {
        row: run_of_table(config, TrainConfig, model, _fitting(config, model, options), **case, **others)
        for row, (model, options, others) in _rows(config).items()
    }
    data = Split(next(iter(runs.values()))).train
    reasons = {}
    for row, run in runs.items():
        given = len(data.inputs) if problem.static else run.in_frames * len(data.names) + len(data.constants)
        try:
            build(run.model, given, data.grid, len(data.names), **run.options)
        except UserError as error:
            reasons[row] = str(error)
    if reasons:
        left = [row for row in runs if row not in reasons]
        remedy = f" The others are --models {','.join(left)}" if left and not config.ablation else ""
        raise UserError(f"{' '.join(reasons.values())}{remedy}")


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
    across = "y" in config.about.geometry.axes
    for name, (parts, others) in WITHOUT.items():
        options = {key: value for key, value in parts.items() if across or key != "learn_y"}
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
