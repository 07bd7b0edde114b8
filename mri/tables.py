"""From scores to the tables of the paper, and to paired comparisons beside them."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from lab.significance import p_value
from lab.table import Cell, Column, Score, Table
from mri.metrics import METRICS
from mri.models import BASELINE
from mri.scores import Result

ESSENTIAL = 3
"""Scores that a narrow terminal shows too; with two echoes, pSNR of both and SSIM of the first."""
ACC, N, METHOD = Column("acc", "acc."), Column("n", "N"), Column("method")


def results_tables(results: Sequence[Result], data: str, against: Sequence[str]) -> dict[str, Table]:
    """Every table that the results can fill, by the name of its file; `data` says what they are about."""
    found = {
        "acceleration": acceleration_table(results, data),
        "few_shot": few_shot_table(results, data),
        **{f"against_{name.replace('-', '_')}": paired_table(results, name, data) for name in against},
        "seeds": seeds_table(results, data),
    }
    return {name: table for name, table in found.items() if table.rows}


def acceleration_table(results: Sequence[Result], data: str) -> Table:
    """Rows acceleration x method, each method with the most training scans it was given."""
    most = {(one.acc, one.label): one for one in sorted(results, key=lambda one: one.num_train)}
    rows = [_cells(one) for one in results if most[one.acc, one.label] is one]
    caption = f"Several accelerations ({data}): mean ± standard error over scans, pSNR in dB"
    return Table([ACC, METHOD, replace(N, extra=True), *_score_columns(results)], rows, caption, group="acc")


def few_shot_table(results: Sequence[Result], data: str) -> Table:
    """Rows N x method at the acceleration with the most of them; empty where nothing was trained on several N."""
    trained: dict[float, set[tuple[str, int]]] = {one.acc: set() for one in results}
    for one in results:
        trained[one.acc] |= {(one.label, one.num_train)} if one.learned else set()
    acc = max(trained, key=lambda acc: len(trained[acc]))
    shown = [one for one in results if one.acc == acc and (one.learned or one.model == BASELINE)]
    rows = [_cells(one) for one in sorted(shown, key=lambda one: one.num_train)]
    caption = f"Number of training scans N at acceleration {acc:g} ({data}): mean ± standard error over scans"
    several = len({num_train for _, num_train in trained[acc]}) > 1
    return Table([N, METHOD, *_score_columns(results)], rows if several else [], caption, group="n")


def paired_table(results: Sequence[Result], reference: str, data: str) -> Table:
    """Differences to a reference at the same acceleration, scan by scan, with Wilcoxon's signed-rank test."""
    rivals = sorted(results, key=lambda one: (not one.variant, one.num_train))
    references = {one.acc: one for one in rivals if one.model == reference}
    tested, echoes, scores = next(iter(METRICS)), _echoes(results), _score_columns(results, "Δ")
    tests = [Column(f"p_{echo}", f"p E{echo}", extra=True) for echo in echoes]
    others = [replace(column, extra=True) for column in scores[len(echoes) :]]
    caption = (
        f"Difference to {reference} ({data}): mean ± standard error over scans, the scan as unit; p of "
        f"{METRICS[tested].title} by Wilcoxon's signed-rank test, two-sided"
    )
    columns = [ACC, N, METHOD, *scores[: len(echoes)], *tests, *others]
    table = Table([replace(column, better=None) for column in columns], caption=caption)
    for result in results:
        if result.model == reference or result.acc not in references:
            continue
        row = _setting(result)
        for echo in result.echoes:
            for name in METRICS:
                known = references[result.acc].values(name, echo)
                # With --supervision zero-shot either knows its own scans alone.
                pairs = [
                    (one, known[scan]) for scan, one in result.values(name, echo).items() if scan in known
                ]
                if not pairs:
                    continue
                row[f"{name}_{echo}"] = Score.of(mine - theirs for mine, theirs in pairs)
                if name == tested:
                    chance = p_value(*zip(*pairs, strict=True))
                    row[f"p_{echo}"] = None if chance is None else f"{chance:.2g}"
        if len(row) > len(_setting(result)):
            table.rows.append(row)
    return table


def seeds_table(results: Sequence[Result], data: str) -> Table:
    """How much of a score is chance: the mean over scans of each seed, then mean and deviation over seeds."""
    scores = [replace(column, better=None) for column in _score_columns(results)]
    caption = f"Several seeds ({data}): mean over scans, mean ± standard deviation over seeds"
    table = Table([ACC, METHOD, N, *scores, Column("seeds", extra=True)], caption=caption)
    for result in results:
        if len(result.by_seed) < 2:
            continue
        row: dict[str, Cell] = {**_setting(result), "seeds": ", ".join(map(str, sorted(result.by_seed)))}
        for name in METRICS:
            for echo in result.echoes:
                seeds = result.by_seed.values()
                means = [fmean(one[name] for one in each if one["echo"] == echo) for each in seeds]
                score = Score.of(means)
                assert score.error is not None
                row[f"{name}_{echo}"] = replace(score, error=score.error * math.sqrt(score.count))
        table.rows.append(row)
    return table


def per_scan_csv(results: Iterable[Result]) -> str:
    """Every score of every scan, for the reader's own statistics."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["acc", "num_train", "method", "scan", "echo", *METRICS])
    for one in results:
        for row in one.scores:
            values = [row[metric] for metric in METRICS]
            writer.writerow([f"{one.acc:g}", one.num_train, one.label, row["scan"], row["echo"], *values])
    return text.getvalue()


def _score_columns(results: Sequence[Result], prefix: str = "") -> list[Column]:
    columns = [
        Column(f"{name}_{echo}", f"{prefix}{metric.title} E{echo}", better="higher", digits=metric.digits)
        for name, metric in METRICS.items()
        for echo in _echoes(results)
    ]
    return [replace(column, extra=number >= ESSENTIAL) for number, column in enumerate(columns)]


def _setting(result: Result) -> dict[str, Cell]:
    return {"acc": f"{result.acc:g}", "n": str(result.num_train or "none"), "method": result.label}


def _cells(result: Result) -> Mapping[str, Cell]:
    cells = _setting(result)
    for name in METRICS:
        for echo in result.echoes:
            cells[f"{name}_{echo}"] = Score.of(result.values(name, echo).values())
    return cells


def _echoes(results: Sequence[Result]) -> list[int]:
    return sorted({echo for result in results for echo in result.echoes})
