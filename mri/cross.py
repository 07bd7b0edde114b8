"""What was trained on one kind of data, scored on others: trained on rows, scored on columns."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from data.scans.scan import Scan
from lab.console import say
from lab.errors import UserError
from lab.runs import FinishedRun
from lab.table import Cell, Column, Score, Table
from mri.config import EvalConfig
from mri.metrics import METRICS
from mri.models import BASELINE
from mri.scores import Result, score_runs
from mri.sources import Source

SHOWN = "psnr"


def cross_table(
    runs: Sequence[FinishedRun],
    roots: Sequence[Path],
    config: EvalConfig,
    folder: Path,
) -> Table:
    """pSNR of all runs on the scans of every data set below `roots`; scores are kept in `folder`.

    Runs are told apart by the kind of data they were trained on; the baseline, which has no training, has one row.
    """
    by_data: dict[str, list[FinishedRun]] = {}
    for run in runs:
        by_data.setdefault(run.manifest["data"]["name"], []).append(run)
    columns: list[Column] = []
    cells: dict[tuple[float, str, str, int], dict[str, Cell]] = {}
    found = tested(roots, config.split, config.plane)
    origins = Counter(scans[0].origin for scans in found.values())
    for root, scans in found.items():
        for trained_on, members in by_data.items():
            kinds = {str(run.config["mask"]) for run in members}
            if len(kinds) > 1:
                raise UserError(
                    f"--cross takes runs of one --mask, not of {', '.join(sorted(kinds))}; use --only."
                )
            for result in score_runs(members, scans, members[0].config["mask"], folder, config.accs):
                row = cells.setdefault(_key(result, trained_on), {})
                row |= {
                    f"{root}-{echo}": Score.of(result.values(SHOWN, echo).values()) for echo in result.echoes
                }
        echoes = range(1, max(scan.num_echoes for scan in scans) + 1)
        name = scans[0].origin if origins[scans[0].origin] == 1 else f"{scans[0].origin} ({root.name})"
        titles = [f"{name}{f' E{echo}' if len(echoes) > 1 else ''}" for echo in echoes]
        columns += [
            Column(f"{root}-{echo}", title, better="higher", digits=METRICS[SHOWN].digits)
            for echo, title in zip(echoes, titles, strict=True)
        ]
    named = [Column("acc", "acc."), Column("trained", "trained on"), Column("method"), Column("n", "N")]
    caption = (
        f"Trained on one data set, scored on another: {METRICS[SHOWN].title} in dB on the {config.split} scans, mean ± "
        "standard error over scans"
    )
    table = Table([*named, *columns], caption=caption, group="acc")
    for acc, trained_on, method, n in sorted(cells, key=lambda key: (key[0], key[1] != "nothing", key[1:])):
        setting = {"acc": f"{acc:g}", "trained": trained_on, "method": method, "n": str(n or "none")}
        table.rows.append({**setting, **cells[acc, trained_on, method, n]})
    return table


def tested(roots: Sequence[Path], split: str, plane: tuple[int, int] | None) -> Mapping[Path, list[Scan]]:
    """The scans of each data set; one without this split is left out, and that is said."""
    found = {}
    for root in roots:
        source = Source(root, skip_bad=True, plane=plane)
        if split in source.splits:
            found[root] = source.scans(split)
        elif source.splits:
            say(f"{root} has no {split} scans and is left out")
        else:
            raise UserError(f"--cross names {root}, but there are no scans in a format known here.")
    if not found:
        raise UserError(f"none of the data sets of --cross has {split} scans.")
    return found


def _key(result: Result, trained_on: str) -> tuple[float, str, str, int]:
    if result.model == BASELINE:
        return result.acc, "nothing", result.label, 0
    return result.acc, trained_on, result.label, result.num_train
