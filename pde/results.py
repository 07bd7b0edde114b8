"""The table of results: models by viscosity, or of one of the other problems."""

import math
from collections.abc import Sequence

import torch

from lab.table import Cell, Column, Score, Table
from pde.evaluate import Evaluation
from pde.models import MODELS

ORDER = tuple(MODELS)


def results_table(evaluations: Sequence[Evaluation]) -> Table:
    """One row per model (and variant of it), one column per case; mean and standard error.

    The error is over test samples; with several seeds, each sample counts with its mean over the seeds.
    """
    titles = cases(evaluations)
    columns = [Column("model", "model"), Column("parameters", "parameters")]
    columns += [Column(case, title, better="lower") for case, title in titles.items()]
    columns += [Column("seeds", "seeds"), Column("minutes", "minutes", digits=1)]
    columns += [Column("steps", "steps", digits=0), Column("epoch", "seconds per epoch", digits=1)]
    caption = "Relative L2 error of the forecast, mean ± standard error over test samples"
    table = Table(columns, caption=caption)
    for label in labels(evaluations):
        same = [e for e in evaluations if e.label == label]
        row: dict[str, Cell] = {
            "model": label,
            "parameters": same[0].parameters,
            "seeds": len({e.seed for e in same}),
            "minutes": _mean([e.minutes for e in same]),
            "steps": _mean([e.steps for e in same]),
            "epoch": _mean([e.seconds_per_pass for e in same]),
        }
        for case in titles:
            errors = [e.errors for e in same if e.case == case]
            row[case] = Score.of(_over_seeds(errors).tolist()) if errors else None
        table.rows.append(row)
    return table


def samples_table(evaluations: Sequence[Evaluation]) -> Table:
    """The error of every run on every test sample, for tests of one's own."""
    names = ("run", "model", "case", "seed", "sample", "error")
    table = Table([Column(name, name, digits=6) for name in names])
    for e in evaluations:
        for sample, error in enumerate(e.errors.tolist()):
            values: tuple[Cell, ...] = (e.name, e.label, e.case, e.seed, sample, error)
            table.rows.append(dict(zip(names, values, strict=True)))
    return table


def ratios_table(evaluations: Sequence[Evaluation]) -> Table | None:
    """The error of every mno divided by that of each other model, by case; None without the two kinds.

    With several seeds of both, ± is the standard error over seeds.
    """
    titles = cases(evaluations)
    mine = [label for label in labels(evaluations) if label.split(",")[0] == "mno"]
    others = [label for label in labels(evaluations) if label not in mine]
    if not mine or not others:
        return None
    columns = [Column("ratio", "error divided by that of another model")]
    columns += [Column(case, title, digits=2) for case, title in titles.items()]
    table = Table(columns)
    for label in mine:
        for other in others:
            row: dict[str, Cell] = {"ratio": f"{label} / {other}"}
            for case in titles:
                row[case] = ratio(*(of_seeds(evaluations, name, case) for name in (label, other)))
            table.rows.append(row)
    return table


def of_seeds(evaluations: Sequence[Evaluation], label: str, case: str) -> Score | None:
    """The mean error of a model, and its standard error over seeds."""
    means = [float(e.errors.mean()) for e in evaluations if (e.label, e.case) == (label, case)]
    return Score.of(means) if means else None


def ratio(above: Score | None, below: Score | None) -> Score | None:
    """One mean over another; relative errors of the two, which are independent, add in squares."""
    if above is None or below is None:
        return None
    value, count = above.mean / below.mean, min(above.count, below.count)
    if above.error is None or below.error is None:
        return Score(value, None, count)
    return Score(value, value * math.hypot(above.error / above.mean, below.error / below.mean), count)


def cases(evaluations: Sequence[Evaluation]) -> dict[str, str]:
    """The columns of the table and their titles: all viscosities, the smooth flows first, or the problem."""
    ordered = sorted(evaluations, key=lambda e: -(e.nu or 0.0))
    return {e.case: e.problem.title if e.nu is None else f"nu = {e.nu:g}" for e in ordered}


def labels(evaluations: Sequence[Evaluation]) -> list[str]:
    """All models and variants, in the order of tables and legends."""
    return [label for _, label in sorted({(ORDER.index(e.model), e.label) for e in evaluations})]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _over_seeds(errors: list[torch.Tensor]) -> torch.Tensor:
    if len({len(values) for values in errors}) > 1:
        return torch.cat(errors)
    return torch.stack(errors).mean(0)
