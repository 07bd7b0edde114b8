"""From scores to the tables of the paper, and to paired comparisons beside them."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean, stdev

from lab.table import Cell, Column, Score, Table
from mri.metrics import METRICS
from mri.models import BASELINE
from mri.scores import Result

ESSENTIAL = 3
"""Scores that a narrow terminal shows too; with two echoes, pSNR of both and SSIM of the first."""


def results_tables(results: Sequence[Result], data: str, against: Sequence[str]) -> dict[str, Table]:
    """Every table that the results can fill, by the name of its file; `data` says what they are about."""
    found = {
        "acceleration": acceleration_table(results, data),
        "few_shot": few_shot_table(results, data),
        **{f"against_{name.replace('-', '_')}": paired_table(results, name, data) for name in against},
        "seeds": seeds_table(results, data),
    }
    return {name: table for name, table in found.items() if table is not None}


def acceleration_table(results: Sequence[Result], data: str) -> Table:
    """Rows acceleration x method, each method with the most training scans it was given."""
    chosen: dict[tuple[float, str], Result] = {}
    for result in sorted(results, key=lambda one: one.num_train):
        chosen[result.acc, result.label] = result
    caption = f"Several accelerations ({data}): mean ± standard error over scans, pSNR in dB"
    columns = [Column("acc", "acc."), Column("method", "method"), Column("n", "N", extra=True)]
    table = Table([*columns, *_score_columns(results)], caption=caption, group="acc")
    table.rows = [_cells(result) for result in results if result in chosen.values()]
    return table


def few_shot_table(results: Sequence[Result], data: str) -> Table | None:
    """Rows N x method at the acceleration with the most values of N; None where nothing was trained on several N."""
    learned = [result for result in results if result.learned]
    counts = {
        acc: len({one.num_train for one in learned if one.acc == acc}) for acc in {r.acc for r in results}
    }
    acc = max(sorted(counts), key=counts.__getitem__)
    if counts[acc] < 2:
        return None
    caption = f"Number of training scans N at acceleration {acc:g} ({data}): mean ± standard error over scans"
    columns = [Column("n", "N"), Column("method", "method"), *_score_columns(results)]
    table = Table(columns, caption=caption, group="n")
    shown = [one for one in results if one.acc == acc and (one.learned or one.model == BASELINE)]
    table.rows = [_cells(one) for one in sorted(shown, key=lambda one: one.num_train)]
    return table


def paired_table(results: Sequence[Result], reference: str, data: str) -> Table | None:
    """Differences to a reference at the same acceleration, scan by scan, with Wilcoxon's signed-rank test."""
    from scipy.stats import wilcoxon

    rivals = [one for one in results if one.model == reference]
    references = {one.acc: one for one in sorted(rivals, key=lambda one: (not one.variant, one.num_train))}
    echoes = _echoes(results)
    columns = [Column("acc", "acc."), Column("n", "N"), Column("method", "method")]
    first, *others = METRICS
    columns += [_difference(first, echo) for echo in echoes]
    columns += [Column(f"p_{echo}", f"p ({METRICS[first].title} E{echo})", extra=True) for echo in echoes]
    columns += [replace(_difference(name, echo), extra=True) for name in others for echo in echoes]
    table = Table(
        columns,
        caption=f"Difference to {reference} ({data}): mean ± standard error over scans, the scan as unit; "
        "p by Wilcoxon's signed-rank test, two-sided",
    )
    for result in results:
        against = references.get(result.acc)
        if against is None or result.model == reference:
            continue
        row: dict[str, Cell] = {**_setting(result)}
        for echo in echoes:
            for name in METRICS:
                theirs = against.values(name, echo)
                differences = [mine - theirs[scan] for scan, mine in result.values(name, echo).items()]
                row[f"{name}_{echo}"] = Score.of(differences)
                if name == first:
                    several = len(differences) > 1 and any(differences)
                    row[f"p_{echo}"] = f"{wilcoxon(differences).pvalue:.2g}" if several else ""
        table.rows.append(row)
    return table if table.rows else None


def seeds_table(results: Sequence[Result], data: str) -> Table | None:
    """How much of a score is chance: the mean over scans of each seed, then mean and deviation over seeds."""
    several = [result for result in results if len(result.by_seed) > 1]
    if not several:
        return None
    scores = [replace(column, better=None) for column in _score_columns(several)]
    columns = [Column("acc", "acc."), Column("method", "method"), Column("n", "N")]
    caption = f"Several seeds ({data}): mean over scans, mean ± standard deviation over seeds"
    table = Table([*columns, *scores, Column("seeds", "seeds", extra=True)], caption=caption)
    for result in several:
        row: dict[str, Cell] = {**_setting(result), "seeds": ", ".join(map(str, sorted(result.by_seed)))}
        for name in METRICS:
            for echo in result.echoes:
                means = [
                    fmean(one[name] for one in scores if one["echo"] == echo)
                    for scores in result.by_seed.values()
                ]
                row[f"{name}_{echo}"] = Score(fmean(means), stdev(means), len(means))
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


def _score_columns(results: Sequence[Result]) -> list[Column]:
    columns = [
        Column(f"{name}_{echo}", f"{metric.title} E{echo}", better="higher", digits=metric.digits)
        for name, metric in METRICS.items()
        for echo in _echoes(results)
    ]
    return [replace(column, extra=number >= ESSENTIAL) for number, column in enumerate(columns)]


def _difference(name: str, echo: int) -> Column:
    return Column(f"{name}_{echo}", f"Δ{METRICS[name].title} E{echo}", digits=METRICS[name].digits)


def _setting(result: Result) -> dict[str, Cell]:
    return {"acc": f"{result.acc:g}", "n": str(result.num_train or "none"), "method": result.label}


def _cells(result: Result) -> dict[str, Cell]:
    cells = _setting(result)
    for name in METRICS:
        for echo in result.echoes:
            cells[f"{name}_{echo}"] = Score.of(result.values(name, echo).values())
    return cells


def _echoes(results: Sequence[Result]) -> list[int]:
    return sorted({echo for result in results for echo in result.echoes})
