"""From scores to tables."""

from collections.abc import Sequence
from statistics import fmean

from lab.demo.scores import Result
from lab.table import Column, Score, Table


def results_table(results: Sequence[Result]) -> Table:
    """One row per model and setting: relative error, mean and standard error over seeds."""
    columns = [Column("model"), Column("size"), Column("num_train", "examples"), Column("parameters")]
    columns += [Column("error", "relative error", better="lower"), Column("seeds", extra=True)]
    caption = "Recovering a hidden Monarch matrix (synthetic): mean ± standard error over seeds"
    table = Table(columns, caption=caption, group="size")
    for result in sorted(results, key=lambda each: each.row.config["size"]):
        config, error = result.row.config, Score.of(fmean(errors) for errors in result.errors)
        setting = result.row.label, config["size"], config["num_train"]
        table.add(*setting, result.parameters, error, len(result.errors))
    return table
