"""The tables of the paper, from the scores of finished runs, and paired comparisons beside them."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean, stdev

from lab.table import Cell, Column, Score, Table
from mri.scoring import METRICS, Result

TITLES = {"psnr": "pSNR", "psnr_complex": "complex pSNR", "ssim": "SSIM"}
DIGITS = {"psnr": 2, "psnr_complex": 2, "ssim": 4}


MAIN = ("psnr", "ssim")


def acceleration_table(results: Sequence[Result], data: str, metrics: Sequence[str] = MAIN) -> Table:
    """Rows acceleration x method, each method with the most training scans it was given."""
    chosen: dict[tuple[float, str], Result] = {}
    for result in results:
        before = chosen.get((result.acc, result.label))
        if before is None or result.n > before.n:
            chosen[result.acc, result.label] = result
    what = "Complex images" if "psnr_complex" in metrics else "Magnitude images"
    caption = f"{what} at several accelerations ({data}): mean ± standard error over scans, pSNR in dB"
    table = Table([Column("acc", "acc."), *_columns(results, metrics)], caption=caption, group="acc")
    table.rows = [{"acc": f"{result.acc:g}", **_cells(result)} for result in chosen.values()]
    return table


def few_shot_table(results: Sequence[Result], data: str) -> Table | None:
    """Rows N x method at the acceleration with the most values of N; None where nothing was trained on several N."""
    counts = {
        acc: len({r.n for r in results if r.acc == acc and r.learned}) for acc in {r.acc for r in results}
    }
    acc = max(sorted(counts), key=counts.__getitem__)
    if counts[acc] < 2:
        return None
    caption = f"Number of training scans N at acceleration {acc:g} ({data}): mean ± standard error over scans"
    columns = [column for column in _columns(results, MAIN) if column.key != "n"]
    table = Table([Column("group", "N"), *columns], caption=caption, group="group")
    learned = sorted((r for r in results if r.acc == acc and r.learned), key=lambda r: (r.n, r.label))
    untrained = [r for r in results if r.acc == acc and r.label == "sense"]
    table.rows = [{"group": "none" if not r.n else str(r.n), **_cells(r)} for r in [*untrained, *learned]]
    return table


def paired_table(results: Sequence[Result], reference: str, data: str) -> Table | None:
    """Differences to a reference at the same acceleration, scan by scan, with Wilcoxon's signed-rank test."""
    from scipy.stats import wilcoxon

    references: dict[float, Result] = {}
    for result in results:
        if result.label == reference and (
            result.acc not in references or result.n > references[result.acc].n
        ):
            references[result.acc] = result
    echoes = _echoes(results)
    columns = [Column("acc", "acc."), Column("n", "N"), Column("method", "method")]
    for metric in ("psnr", "ssim"):
        columns += [
            Column(f"{metric}_{echo}", f"Δ{TITLES[metric]} E{echo}", digits=DIGITS[metric]) for echo in echoes
        ]
    columns += [Column(f"p_{echo}", f"p (pSNR E{echo})") for echo in echoes]
    table = Table(
        columns,
        caption=f"Difference to {reference} ({data}): mean ± standard error over scans, the scan as unit; "
        "p by Wilcoxon's signed-rank test, two-sided",
    )
    for result in results:
        against = references.get(result.acc)
        if against is None or result.label == reference:
            continue
        row: dict[str, Cell] = {"acc": f"{result.acc:g}", "n": str(result.n or ""), "method": result.label}
        for echo in echoes:
            for metric in ("psnr", "ssim"):
                mine, theirs = result.values(metric, echo), against.values(metric, echo)
                differences = [mine[scan] - theirs[scan] for scan in mine]
                row[f"{metric}_{echo}"] = Score.of(differences)
                if metric == "psnr":
                    several = len(differences) > 1 and any(differences)
                    row[f"p_{echo}"] = f"{wilcoxon(differences).pvalue:.2g}" if several else ""
        table.rows.append(row)
    return table if table.rows else None


def seeds_table(results: Sequence[Result], data: str) -> Table | None:
    """How much of a score is chance: the mean over scans of each seed, then mean and deviation over seeds."""
    several = [result for result in results if len(result.by_seed) > 1]
    if not several:
        return None
    columns = [Column("acc", "acc."), *_columns(several, MAIN), Column("seeds", "seeds")]
    caption = f"Several seeds ({data}): mean over scans, mean ± standard deviation over seeds"
    table = Table([replace(column, better=None) for column in columns], caption=caption)
    for result in several:
        row: dict[str, Cell] = {"acc": f"{result.acc:g}", "method": result.label, "n": str(result.n)}
        for metric in MAIN:
            for echo in _echoes([result]):
                means = [
                    fmean(one[metric] for one in rows if one["echo"] == echo)
                    for rows in result.by_seed.values()
                ]
                row[f"{metric}_{echo}"] = Score(fmean(means), stdev(means), len(means))
        table.rows.append(row | {"seeds": ", ".join(map(str, sorted(result.by_seed)))})
    return table


def per_scan_csv(results: Iterable[Result]) -> str:
    """Every score of every scan, for the reader's own statistics."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["acc", "n_train", "method", "scan", "echo", *METRICS])
    for result in results:
        for row in result.rows:
            scores = [row[metric] for metric in METRICS]
            writer.writerow([f"{result.acc:g}", result.n, result.label, row["scan"], row["echo"], *scores])
    return text.getvalue()


def _columns(results: Sequence[Result], metrics: Sequence[str]) -> list[Column]:
    columns = [Column("method", "method"), Column("n", "N")]
    for metric in metrics:
        for echo in _echoes(results):
            title = f"{TITLES[metric]} E{echo}"
            columns.append(Column(f"{metric}_{echo}", title, better="higher", digits=DIGITS[metric]))
    return columns


def _cells(result: Result) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"method": result.label, "n": str(result.n or "")}
    for metric in METRICS:
        for echo in _echoes([result]):
            cells[f"{metric}_{echo}"] = Score.of(result.values(metric, echo).values())
    return cells


def _echoes(results: Sequence[Result]) -> list[int]:
    return sorted({row["echo"] for result in results for row in result.rows})
