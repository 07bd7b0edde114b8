"""The page itself: what was compared, on what, how to repeat it; tables; viewers; training; manifests."""

import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lab import plot
from lab.files import write_text
from lab.report.viewer import ROOM, Viewer, thinned
from lab.runs import FinishedRun
from lab.table import Cell, Column, Score, Table, is_diverged

SCRIPTS = ("chart.js", "table.js", "pictures.js", "viewer.js", "page.js")
MAPS = {"field": plot.FIELD_MAP, "image": plot.IMAGE_MAP, "map": plot.QUANTITY_MAP, "error": plot.ERROR_MAP}


@dataclass(frozen=True)
class Page:
    """What a report says; everything but the title may be left out."""

    title: str
    compared: str
    """What was compared: the rows."""
    data: str
    """On what data, as a sentence; synthetic and simulated data are called that."""
    tables: Sequence[Table] = ()
    viewers: Sequence[Viewer] = ()
    runs: Mapping[str, Sequence[FinishedRun]] = field(default_factory=dict)
    """The runs of each row."""
    monitor: str = "error"
    """The column of metrics.csv that the training curves show."""
    command: str = ""
    """The command that made the page."""


def write(page: Page, path: Path) -> Path:
    """Write the page, one file that needs no other."""
    share = ROOM // max(len(page.viewers), 1)
    viewers = [thinned(viewer, share) for viewer in page.viewers]
    content = {
        "viewers": [viewer.described() for viewer in viewers],
        "training": _training(page),
        "colours": list(plot.COLOURS),
        "maps": {name: _colours(map_name) for name, map_name in MAPS.items()},
    }
    parts = {
        "TITLE": html.escape(page.title),
        "STYLE": _asset("page.css"),
        "HEAD": _head(page),
        "TABLES": "\n".join(_table(table) for table in page.tables),
        "RUNS": _runs(page),
        "PICTURES": "\n".join(_pictures(viewers)),
        "CONTENT": _json(content),
        "SCRIPT": "\n".join(_asset(name) for name in SCRIPTS),
    }
    text = _asset("page.html")
    for name, value in parts.items():
        text = text.replace(f"<!--{name}-->", value)
    write_text(path, text)
    return path


def _asset(name: str) -> str:
    return files("lab.report").joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that may stand inside a script element; numbers that are not finite become null."""
    return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, (list, tuple)) else value


def _colours(name: str) -> list[list[int]]:
    from matplotlib import colormaps

    colours = np.rint(255 * colormaps[name](np.linspace(0, 1, 256))[:, :3]).astype(int)
    found: list[list[int]] = colours.tolist()
    return found


def _pictures(viewers: Sequence[Viewer]) -> Iterator[str]:
    for at, viewer in enumerate(viewers):
        for number, text in enumerate(viewer.pictures()):
            yield f'<script type="text/plain" id="picture-{at}-{number}">{text}</script>'


def _head(page: Page) -> str:
    """What was compared, on what, best and worst, and the commands that repeat it."""
    facts = [("Compared", [page.compared]), ("Data", [page.data]), ("Outcome", list(_best_and_worst(page)))]
    blocks = "".join(
        f"<dt>{name}</dt>" + "".join(f"<dd>{html.escape(sentence)}</dd>" for sentence in sentences)
        for name, sentences in facts
        if sentences
    )
    commands = [run.manifest.get("command") for runs in page.runs.values() for run in runs]
    repeat = [command for command in dict.fromkeys([*commands, page.command]) if command]
    if repeat:
        listing = html.escape("\n".join(repeat))
        copy = '<button type=button class="copy-commands">Copy</button> <span role=status></span>'
        blocks += (
            f"<dt>Repeat it</dt><dd><details><summary>{len(repeat)} command{'s' * (len(repeat) > 1)}</summary>"
            f'<p class="buttons">{copy}</p><pre id="commands" tabindex=0>{listing}</pre></details></dd>'
        )
    return f"<dl>{blocks}</dl>"


def _best_and_worst(page: Page) -> Iterator[str]:
    """The best and the worst row of the first table's first score, within each of its groups."""
    if not page.tables:
        return
    table = page.tables[0]
    column = next((each for each in table.columns if each.better is not None), None)
    named = [each for each in table.columns if table.is_text(each)]
    if column is None or not named:
        return
    what = ", ".join(word for word in (table.caption.partition(":")[0], column.title) if word)
    groups: dict[Cell, list[Mapping[str, Cell]]] = {}
    for row in table.rows:
        groups.setdefault(row.get(table.group) if table.group else None, []).append(row)
    for rows in groups.values():
        known = [(value, row) for row in rows if (value := _number(row.get(column.key))) is not None]
        if len(known) > 1:
            known.sort(key=lambda each: each[0], reverse=column.better == "higher")
            (_, best), (_, worst) = known[0], known[-1]
            diverged = [_named(table, row, named) for row in rows if is_diverged(row.get(column.key))]
            yield (
                f"{what}: best {_named(table, best, named)} ({table.shown(best, column)}), "
                f"worst {_named(table, worst, named)} ({table.shown(worst, column)})"
                f"{'; diverged: ' if diverged else ''}{'; '.join(diverged)}."
            )


def _named(table: Table, row: Mapping[str, Cell], named: Sequence[Column]) -> str:
    if len(named) == 1:
        return table.shown(row, named[0])
    words = (f"{column.title} {table.shown(row, column)}" for column in named if row.get(column.key))
    return ", ".join(words)


def _number(cell: Cell) -> float | None:
    value = cell.mean if isinstance(cell, Score) else cell
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _table(table: Table) -> str:
    """A table that the page's script makes sortable; its CSV goes with it, to be copied."""
    columns = [
        column for column in table.columns if any(row.get(column.key) is not None for row in table.rows)
    ]
    heads = "".join(
        f'<th scope="col" class="{"text" if table.is_text(column) else "number"}">'
        f"<button type=button>{html.escape(column.title)}</button></th>"
        for column in columns
    )
    rows = []
    for row in table.rows:
        cells = []
        for column in columns:
            value, kind = _number(row.get(column.key)), "text" if table.is_text(column) else "number"
            order = "" if value is None else f' data-value="{value!r}"'
            best = " best" if table.is_best(row, column) else ""
            cells.append(f'<td class="{kind}{best}"{order}>{html.escape(table.shown(row, column))}</td>')
        switch = '<td><input type=checkbox checked aria-label="show this row"></td>'
        rows.append(f"<tr>{switch}{''.join(cells)}</tr>")
    note = f"<p>{html.escape(table.note())}</p>" if table.note() else ""
    return (
        f'<section class="table"><div class="scroll" tabindex=0><table>'
        f"<caption><span>{html.escape(table.caption)}</span></caption>"
        f'<thead><tr><th scope="col"><span class="hidden">shown</span></th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{note}"
        f'<p class="buttons"><button type=button class="copy">Copy shown rows as CSV</button> '
        f'<button type=button class="all">Show all rows</button> <span role=status></span></p>'
        f'<script type="text/plain" class="csv">{html.escape(table.csv())}</script></section>'
    )


def _training(page: Page) -> list[dict[str, Any]]:
    """The curve of every run: the score that chose its weights, against its time."""
    curves = []
    for label, runs in page.runs.items():
        for run in runs:
            try:
                metrics = run.metrics()
            except OSError:  # weights without the folder of their run
                continue
            known = [each for each in metrics if page.monitor in each]
            if known:
                seconds = [each.get("seconds", each["epoch"]) for each in known]
                name = f"{label}, seed {run.seed}" if len(runs) > 1 else label
                values = [each[page.monitor] for each in known]
                curves.append({"name": name, "row": label, "x": seconds, "y": values})
    return curves


def _runs(page: Page) -> str:
    """Time and hardware of every run and, on request, its manifest."""
    blocks = []
    for label, runs in page.runs.items():
        for run in runs:
            told = run.manifest
            hardware = told.get("hardware", {})
            facts = {
                "started": told.get("started"),
                "time": f"{told['wall_seconds'] / 60:.1f} minutes" if told.get("wall_seconds") else None,
                "processor": hardware.get("processor"),
                "threads": hardware.get("torch_threads"),
                "accelerators": ", ".join(map(str, hardware.get("accelerators", []))) or None,
                "seed": told.get("seed"),
            }
            words = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
            manifest = html.escape(json.dumps(dict(told), indent=2))
            blocks.append(
                f'<div class="run"><b>{html.escape(label)}</b>: {html.escape(run.name)}'
                f'<p class="note">{html.escape(words)}</p>'
                f"<details><summary>manifest</summary><pre tabindex=0>{manifest}</pre></details></div>"
            )
    return "\n".join(blocks)
