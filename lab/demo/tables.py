"""From scores to tables."""

from collections.abc import Sequence
from statistics import fmean

from lab.demo.scores import Result
from lab.table import Column, Score, Table


def results_table(results: Sequence[Result]) -> Table:
    """One row per model and setting: relative error, mean and standard error over seeds."""
    table = Table(
        [
            Column("model", "model"),
            Column("size", "size"),
            Column("num_train", "examples"),
            Column("parameters", "parameters"),
            Column("error", "relative error", better="lower"),
            Column("seeds", "seeds", extra=True),
        ],
        caption="Recovering a hidden Monarch matrix (synthetic): mean ± standard error over seeds",
        group="size",
    )
    for result in sorted(results, key=lambda each: each.row.config["size"]):
        config = result.row.config
        table.rows.append(
            {
                "model": result.row.label,
                "size": config["size"],
                "num_train": config["num_train"],
                "parameters": result.parameters,
                "error": Score.of(fmean(errors) for errors in result.errors),
                "seeds": len(result.errors),
            }
        )
    return table
