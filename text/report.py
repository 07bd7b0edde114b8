"""From scores to a page for the browser."""

from collections.abc import Sequence
from pathlib import Path

from lab import report
from lab.manifest import command_line
from lab.report import Page
from lab.table import Table
from text.experiment import LanguageModelling
from text.scores import Result


def write(results: Sequence[Result], table: Table, path: Path) -> Path:
    """The page: the table, and the training of every run."""
    settings = dict.fromkeys(f"{each.row.label}, {each.row.config['setting']}" for each in results)
    origins = dict.fromkeys(str(each.row.runs[0].manifest["data"]["origin"]) for each in results)
    page = Page(
        title="Language models",
        compared=", ".join(settings),
        data=f"{', '.join(origins)}; the test documents were not seen in training.",
        tables=[table],
        runs={_label(each): each.row.runs for each in results},
        monitor=LanguageModelling.monitor,
        command=command_line(),
    )
    return report.write(page, path)


def _label(result: Result) -> str:
    """What the page calls a row."""
    config = result.row.config
    length = "" if config["minutes"] is None else f", {config['minutes']:g} minutes"
    return f"{result.row.label}, {config['size']}, {config['setting']}{length}"
