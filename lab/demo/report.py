"""From scores to a page for the browser."""

from collections.abc import Sequence
from pathlib import Path

from lab import report
from lab.demo.scores import Result
from lab.manifest import command_line
from lab.report import Page
from lab.table import Table


def write(results: Sequence[Result], table: Table, path: Path) -> Path:
    """The page: the table, and the training of every run."""
    page = Page(
        title="Recovering a hidden Monarch matrix",
        compared=", ".join(dict.fromkeys(result.row.label for result in results)),
        data="Products of a hidden matrix with random vectors, both synthetic.",
        tables=[table],
        runs={f"{each.row.label}, size {each.row.config['size']}": each.row.runs for each in results},
        command=command_line(),
    )
    return report.write(page, path)
