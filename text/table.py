"""`python -m text.table`: train every setting for equal steps and for shares of the dense time; a table."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from lab.cli import main
from lab.config import run_of_table
from lab.errors import UserError, nearest
from text.config import TableConfig, TrainConfig
from text.settings import SETTINGS

if TYPE_CHECKING:
    from lab.runs import FinishedRun


def table(config: TableConfig) -> None:
    """Train what has not been trained yet, one run after another, then compare all; repeat it to continue."""
    from lab.paths import runs_dir
    from lab.runs import train_missing
    from text.eval import report
    from text.train import train

    wanted = list(planned(config))
    runs = train_missing(wanted, train)
    if budgeted := list(timed(config, wanted, runs)):
        runs += train_missing(budgeted, train)
    report(runs, runs_dir() / TrainConfig.app / f"{config.prefix}-{config.model}-results")


def planned(config: TableConfig) -> Iterator[TrainConfig]:
    """The options of every run of equal steps."""
    for setting in config.settings:
        if setting not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise UserError(
                f"--settings: there is no {setting!r}{nearest(setting, SETTINGS)}; choose from {known}."
            )
    for setting in config.settings:
        for seed in range(config.seeds):
            name = f"{config.prefix}-{config.model}-{setting}-seed{seed}"
            yield run_of_table(config, TrainConfig, config.model, {}, setting=setting, seed=seed, name=name)


def timed(config: TableConfig, wanted: list[TrainConfig], runs: "list[FinishedRun]") -> Iterator[TrainConfig]:
    """The Monarch settings from scratch again, for fractions of the time that the dense run of the first seed took.

    One seed's time serves all, so that the seeds of a row have the same budget.
    """
    seconds = {
        run.config["setting"]: run.metrics("train_seconds")[-1]["train_seconds"]
        for run in runs
        if run.seed == 0
    }
    for each in wanted:
        if each.way.against not in seconds or each.way.pretrained:
            continue
        for share in config.times:
            minutes = float(f"{share * seconds[each.way.against] / 60:.3g}")
            yield replace(each, minutes=minutes, name=f"{each.name}-time{share:g}")


if __name__ == "__main__":
    main(table)
