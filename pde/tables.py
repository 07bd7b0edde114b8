"""From scores to tables."""

import math
from collections.abc import Sequence
from statistics import fmean

from lab.significance import p_value
from lab.table import Cell, Column, Score, Table
from pde.config import TrainConfig
from pde.metrics import BANDS, METRICS, correlation_time
from pde.problems import OWN
from pde.scores import Result

PAPER = {"nu1e-3": 0.59, "nu1e-4": 0.81, "nu1e-5": 0.88}
"""The error of the Monarch Neural Operator over FNO's in Dao et al. (2022), 1000 trajectories."""


CORRELATIONS = (0.95, 0.8)
"""Levels of the correlation with the truth that tables of horizons have."""


def results_table(results: Sequence[Result]) -> Table:
    """One row per model and setting, one column per case; mean and standard error.

    The error is over test samples; with several seeds, each sample counts with its mean over the seeds.
    """
    titles = cases(results)
    columns = [Column("model"), Column("parameters", extra=True)]
    columns += [Column(case, title, better="lower") for case, title in titles.items()]
    columns += [Column("seeds", extra=True), Column("minutes", digits=1, extra=True)]
    columns += [Column("steps", digits=0, extra=True)]
    columns += [Column("pass", "seconds per pass", digits=1, extra=True)]
    kind = "" if results[0].problem.name == OWN else " (simulated flows)"
    caption = (
        f"Relative L2 error of the forecast{kind}: mean ± standard error over test samples{_horizon(results)}"
    )
    table = Table(columns, caption=caption)
    for label in labels(results):
        same = [result for result in results if result.label == label]
        row: dict[str, Cell] = {
            "model": label,
            "parameters": same[0].parameters,
            "seeds": max(len(result.scores) for result in same),
        }
        for name in ("minutes", "steps", "pass"):
            known = [value for result in same if (value := result.mean_of_runs(name)) is not None]
            row[name] = fmean(known) if known else None
        for result in same:
            row[result.case] = Score.of(_over_seeds([scores.errors for scores in result.scores]))
        table.rows.append(row)
    return table


def _horizon(results: Sequence[Result]) -> str:
    """How far the forecasts of own data go, in its time."""
    if results[0].problem.name != OWN or results[0].problem.static:
        return ""
    steps = {result.test.frames - result.problem.frames_in for result in results}
    return f", {' or '.join(map(str, sorted(steps)))} steps{results[0].test.step_text}"


def metrics_table(results: Sequence[Result]) -> Table:
    """Other scores that users of public data know, one row per model and case; means over samples and seeds."""
    test = results[0].test
    units = {test.units.get(name, "") for name in test.names}
    unit = f" ({units.pop()})" if len(units) == 1 and units != {""} else ""
    several = len(cases(results)) > 1
    columns = [Column("model"), *([Column("case")] if several else [])]
    titles = {name: title if name in ("nrmse", "vrmse") else title + unit for name, title in METRICS.items()}
    titles |= {name: f"{name} frequencies{unit}" for name in BANDS}
    columns += [
        Column(name, title, better="lower", digits=5, extra=name in BANDS) for name, title in titles.items()
    ]
    caption = (
        "Other scores: RMSE, nRMSE, boundary RMSE and RMSE by frequency as PDEBench defines them, VRMSE as The Well "
        "does, means over test samples; and the largest error of all"
    )
    table = Table(columns, caption=caption, group="case" if several else None)
    for result in results:
        row: dict[str, Cell] = {"model": result.label, "case": result.case}
        for name in METRICS:
            values = [each for scores in result.scores for each in scores.metrics.get(name, [])]
            row[name] = (max(values) if name == "maximum" else fmean(values)) if values else None
        for name in BANDS:
            known = [each for scores in result.scores if (each := scores.bands.get(name)) is not None]
            row[name] = fmean(known) if known else None
        table.rows.append(row)
    return table


def samples_table(results: Sequence[Result]) -> Table:
    """The scores of every run on every test sample, for tests of one's own."""
    names = ("run", "model", "case", "seed", "sample", "error", *METRICS)
    table = Table([Column(name, digits=6) for name in names])
    for result in results:
        for run, scores in zip(result.row.runs, result.scores, strict=True):
            for sample, error in enumerate(scores.errors):
                others = [
                    values[sample] if (values := scores.metrics.get(name)) else None for name in METRICS
                ]
                table.add(run.name, result.label, result.case, run.seed, sample, error, *others)
    return table


def ratios_table(results: Sequence[Result]) -> Table | None:
    """The error of our model, in every setting, divided by that of each other one; None without the two kinds.

    With several seeds of both, ± is the standard error over seeds. p is that of Wilcoxon's signed-rank test on the test
    samples, each with its mean over the seeds. The paper's ratio stands below, where it has one.
    """
    ours, titles = TrainConfig.model, cases(results)
    mine = [label for label in labels(results) if label.split(",")[0] == ours]
    others = [label for label in labels(results) if label not in mine]
    if not mine or not others:
        return None
    columns = [Column("ratio", "error divided by that of another model")]
    columns += [Column(case, title, digits=2) for case, title in titles.items()]
    columns += [Column(f"p_{case}", f"p, {title}", extra=True) for case, title in titles.items()]
    caption = "Ratios of errors: ± over seeds; p by Wilcoxon's signed-rank test over test samples, two-sided"
    table = Table(columns, caption=caption)
    for label in mine:
        for other in others:
            row: dict[str, Cell] = {"ratio": f"{label} / {other}"}
            for case in titles:
                row[case] = ratio(*(of_seeds(results, name, case) for name in (label, other)))
                row[f"p_{case}"] = _chance(results, label, other, case)
            table.rows.append(row)
    if PAPER.keys() & titles.keys():
        table.rows.append({"ratio": f"{ours} / fno in the paper", **PAPER})
    return table


def places_table(results: Sequence[Result]) -> Table | None:
    """The error in the regions that the geometry has, one row per model, ± over seeds; None where there are none."""
    results = [result for result in results if result.test.geometry.places]
    if not results:
        return None
    geometry = results[0].test.geometry
    caption = f"Root mean square error over the spread of the field, by {geometry.place}"
    columns = [Column(name, digits=3, better="lower") for name in geometry.places]
    table = Table([Column("model"), *columns], caption=caption)
    for result in results:
        row: dict[str, Cell] = {"model": result.label}
        for name in geometry.places:
            known = [value for scores in result.scores if (value := scores.regions.get(name)) is not None]
            row[name] = Score.of(known) if known else None
        table.rows.append(row)
    return table


def horizon_table(results: Sequence[Result]) -> Table | None:
    """How long forecasts follow the truth, in steps, and what energy is left; None where nothing is forecast."""
    results = [result for result in results if result.scores[0].correlations]
    if not results:
        return None
    caption = "Steps until the correlation with the truth falls below a level: mean ± standard error over test samples"
    columns = [Column("model"), Column("case", extra=True)]
    columns += [Column(f"correlation {level:g}", digits=1, better="higher") for level in CORRELATIONS]
    columns += [Column("steps", "of steps")]
    flows = any(result.scores[0].energy for result in results)
    columns += [Column("energy", "energy at the end over the true one", digits=3)] if flows else []
    table = Table(columns, caption=caption, group="case")
    for case in cases(results):
        for result in (each for each in results if each.case == case):
            row: dict[str, Cell] = {"model": result.label, "case": result.title}
            for level in CORRELATIONS:
                times = [correlation_time(scores.correlations, level) for scores in result.scores]
                row[f"correlation {level:g}"] = Score.of(_over_seeds([[*map(float, each)] for each in times]))
            row["steps"] = len(result.scores[0].correlations[0])
            if result.scores[0].energy:
                row["energy"] = fmean(scores.energy[-1] / scores.true_energy[-1] for scores in result.scores)
            table.rows.append(row)
    return table


def of_seeds(results: Sequence[Result], label: str, case: str) -> Score | None:
    """The mean error of a model, and its standard error over seeds."""
    for result in results:
        if (result.label, result.case) == (label, case):
            return Score.of(fmean(scores.errors) for scores in result.scores)
    return None


def _chance(results: Sequence[Result], label: str, other: str, case: str) -> str | None:
    """The p of two models on the same test samples; None where those are not the same."""
    rows = [next((r for r in results if (r.label, r.case) == (name, case)), None) for name in (label, other)]
    mine, theirs = rows
    if mine is None or theirs is None or mine.test.describe() != theirs.test.describe():
        return None
    if mine.problem.frames_in != theirs.problem.frames_in:  # whose forecasts are shorter
        return None
    errors = [_over_seeds([scores.errors for scores in each.scores]) for each in (mine, theirs)]
    p = p_value(*errors) if len(errors[0]) == len(errors[1]) else None
    return None if p is None else f"{p:.2g}"


def ratio(above: Score | None, below: Score | None) -> Score | None:
    """One mean over another; relative errors of the two, which are independent, add in squares."""
    if above is None or below is None:
        return None
    value, count = above.mean / below.mean, min(above.count, below.count)
    if above.error is None or below.error is None:
        return Score(value, None, count)
    return Score(value, value * math.hypot(above.error / above.mean, below.error / below.mean), count)


def cases(results: Sequence[Result]) -> dict[str, str]:
    """The columns of the table and their titles, in the order of falling values: the smooth flows first."""

    def falling(result: Result) -> float:
        return -float(result.test.parameters.get(result.problem.case or "", 0.0))

    return {result.case: result.title for result in sorted(results, key=falling)}


def labels(results: Sequence[Result]) -> list[str]:
    """All rows, in the order of tables and legends."""
    return list(dict.fromkeys(result.label for result in results))


def _over_seeds(errors: list[list[float]]) -> list[float]:
    if len({len(values) for values in errors}) > 1:
        return [value for values in errors for value in values]
    return [fmean(values) for values in zip(*errors, strict=True)]
