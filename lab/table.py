"""Result tables: the same rows as terminal, Markdown, CSV and LaTeX, with the best value in bold."""

import csv
import io
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lab.console import console
from lab.files import write_text

if TYPE_CHECKING:
    from rich.table import Table as RichTable


@dataclass(frozen=True)
class Score:
    """A mean with its standard error over `count` independent values (None for a single one).

    >>> Score.of([1.0, 2.0, 3.0])
    Score(mean=2.0, error=0.5773502691896258, count=3)
    """

    mean: float
    error: float | None = None
    count: int = 1

    @classmethod
    def of(cls, values: Iterable[float]) -> "Score":
        """Mean and standard error of the mean, with the sample standard deviation.

        Where a value is NaN or infinite, as of a model that diverged, there is no mean: both are NaN.
        """
        values = list(values)
        if not values:
            raise ValueError("a score needs at least one value.")
        if not all(map(math.isfinite, values)):
            return cls(math.nan, math.nan if len(values) > 1 else None, len(values))
        error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
        return cls(statistics.fmean(values), error, len(values))


FOLDED = 16
"""Characters per line that a column of text keeps on a narrow terminal."""

Cell = str | int | float | Score | None


@dataclass(frozen=True)
class Column:
    """A column: the key of its cells, its title (the key, if not given), which direction is better, and decimals.

    An `extra` column is shown on a terminal only where there is room for it; files always have it.
    """

    key: str
    title: str = ""
    better: Literal["lower", "higher"] | None = None
    digits: int = 4
    extra: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.key)


@dataclass
class Table:
    """Rows of cells under columns; the best score of each column is bold, within each group of rows.

    `group` names a column (an acceleration, a number of scans): the best is sought among the rows that
    share its value. Without it all rows compete.
    """

    columns: Sequence[Column]
    rows: list[Mapping[str, Cell]] = field(default_factory=list)
    caption: str = ""
    group: str | None = None

    def add(self, *cells: Cell) -> None:
        """One more row, its cells in the order of the columns."""
        self.rows.append(dict(zip((column.key for column in self.columns), cells, strict=True)))

    def markdown(self) -> str:
        """A GitHub table, with the caption above."""
        lines = [f"{self.caption}\n"] if self.caption else []
        rules = ("---" if self.is_text(column) else "---:" for column in self.columns)
        lines.append("| " + " | ".join(column.title for column in self.columns) + " |")
        lines.append("|" + "|".join(rules) + "|")
        for row in self.rows:
            cells = [self._shown(row, column, "±", "**{}**") for column in self.columns]
            lines.append("| " + " | ".join(cells) + " |")
        lines += [f"\n{self.note()}"] if self.note() else []
        return "\n".join(lines) + "\n"

    def note(self) -> str:
        """Which rows have scores that are not finite, as of a model that diverged; empty where there are none."""
        scored = [column for column in self.columns if column.better is not None]
        named = [column for column in self.columns if self.is_text(column)]
        diverged = [
            " ".join(str(row[column.key]) for column in named if row.get(column.key) is not None)
            for row in self.rows
            if any(is_diverged(row.get(column.key)) for column in scored)
        ]
        return f"Diverged, with scores that are not finite: {'; '.join(diverged)}." if diverged else ""

    def latex(self) -> str:
        """A booktabs table, as papers use it."""
        alignment = "".join("l" if self.is_text(column) else "r" for column in self.columns)
        lines = [r"\begin{table}", r"  \centering"]
        caption = ". ".join(text for text in (self.caption, self.note()) if text)
        if caption:
            lines.append(f"  \\caption{{{_escape(caption)}}}")
        lines += [f"  \\begin{{tabular}}{{{alignment}}}", r"    \toprule"]
        lines.append("    " + " & ".join(_escape(column.title) for column in self.columns) + r" \\")
        lines.append(r"    \midrule")
        for index, row in enumerate(self.rows):
            if index and self.group and row.get(self.group) != self.rows[index - 1].get(self.group):
                lines.append(r"    \midrule")
            shown = (self._shown(row, c, r"$\pm$", r"\textbf{{{}}}", escape=True) for c in self.columns)
            lines.append("    " + " & ".join(shown) + r" \\")
        lines += [r"    \bottomrule", r"  \end{tabular}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Full precision, a column for each standard error and each count."""
        text = io.StringIO()
        names: list[str] = []
        for key in (column.key for column in self.columns):
            scored = any(isinstance(row.get(key), Score) for row in self.rows)
            names += [key, f"{key}_se", f"{key}_n"] if scored else [key]
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            flat: dict[str, Cell] = {column.key: row.get(column.key) for column in self.columns}
            for key, cell in list(flat.items()):
                if isinstance(cell, Score):
                    flat |= {key: cell.mean, f"{key}_se": cell.error, f"{key}_n": cell.count}
            writer.writerow(flat)
        return text.getvalue()

    def print(self) -> None:
        """Show the table on the terminal. Text may be folded, numbers never are; extra columns appear if they fit.

        On a terminal too narrow for the table, each row becomes a list.
        """
        shown, room = list(self.columns), console().width
        while self._width(shown) > room and any(column.extra for column in shown):
            shown.remove([column for column in shown if column.extra][-1])
        # A terminal would break the caption within words; a file keeps it in one line.
        soft = not console().is_terminal
        if self._width(shown) > room:
            self._print_as_lists(shown, soft)
        else:
            console().print(self._rich(shown), soft_wrap=soft)
        if self.note():
            console().print(self.note(), markup=False, soft_wrap=soft)

    def _width(self, columns: Sequence[Column]) -> int:
        """The least width of the table, its rules included."""
        return sum(self._least(column) for column in columns) + 3 * len(columns) + 1

    def _least(self, column: Column) -> int:
        """The least width of a column: titles fold at their spaces, text to FOLDED characters, numbers not at all."""
        cells = max((len(self.shown(row, column)) for row in self.rows), default=0)
        word = max(len(word) for word in column.title.split() or [""])
        return max(word, min(cells, FOLDED) if self.is_text(column) else cells)

    def _widths(self, columns: Sequence[Column]) -> dict[str, int]:
        """The widths of the columns by key; what room there is unfolds texts, then titles."""
        spare, found = console().width - self._width(columns), {}
        for column in sorted(columns, key=lambda column: not self.is_text(column)):
            least, cells = self._least(column), [len(self.shown(row, column)) for row in self.rows]
            more = min(spare, max(len(column.title), *cells, least) - least)
            found[column.key], spare = least + more, spare - more
        return found

    def _rich(self, columns: Sequence[Column]) -> "RichTable":
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(title=Text(self.caption) if self.caption else None, title_justify="left")
        widths = self._widths(columns)
        for column in columns:
            justify: Literal["left", "right"] = "left" if self.is_text(column) else "right"
            table.add_column(Text(column.title), justify=justify, width=widths[column.key])
        for index, row in enumerate(self.rows):
            following = self.rows[index + 1] if index + 1 < len(self.rows) else row
            ends_group = self.group is not None and following.get(self.group) != row.get(self.group)
            table.add_row(*(self._on_screen(row, column) for column in columns), end_section=ends_group)
        return table

    def _print_as_lists(self, columns: Sequence[Column], soft: bool) -> None:
        from rich.markup import escape

        console().print(self.caption, markup=False, soft_wrap=soft)
        for row in self.rows:
            cells = {escape(column.title): self._on_screen(row, column) for column in columns}
            lines = [f"{title}: {cell}" for title, cell in cells.items() if cell]
            console().print("\n  ".join(lines), soft_wrap=soft)

    def _on_screen(self, row: Mapping[str, Cell], column: Column) -> str:
        """A cell in Rich's markup; brackets of its own are none."""
        from rich.markup import escape

        text = escape(self.shown(row, column))
        return f"[bold]{text}[/bold]" if self.is_best(row, column) else text

    def save(self, folder: Path, stem: str) -> list[Path]:
        """Write `stem`.md, .csv and .tex into `folder`; return their paths."""
        texts = {".md": self.markdown(), ".csv": self.csv(), ".tex": self.latex()}
        for suffix, text in texts.items():
            write_text(folder / f"{stem}{suffix}", text)
        return [folder / f"{stem}{suffix}" for suffix in texts]

    def is_text(self, column: Column) -> bool:
        """Whether a column holds words."""
        return any(isinstance(row.get(column.key), str) for row in self.rows)

    def shown(self, row: Mapping[str, Cell], column: Column) -> str:
        """A cell as plain text."""
        return _text(row.get(column.key), column.digits, "±")

    def _shown(
        self, row: Mapping[str, Cell], column: Column, plus_minus: str, bold: str, *, escape: bool = False
    ) -> str:
        cell = row.get(column.key)
        text = _text(cell, column.digits, plus_minus)
        if escape and not isinstance(cell, Score):
            text = _escape(text)
        elif isinstance(cell, str):
            text = " ".join(text.replace("|", r"\|").split("\n"))  # in Markdown both would end the cell
        return bold.format(text) if self.is_best(row, column) else text

    def is_best(self, row: Mapping[str, Cell], column: Column) -> bool:
        """Whether a row has the best score of a column, within its group."""
        if column.better is None:
            return False
        rivals = [r for r in self.rows if not self.group or r.get(self.group) == row.get(self.group)]
        known = [value for r in rivals if (value := _value(r.get(column.key))) is not None]
        mine = _value(row.get(column.key))
        if mine is None or len(known) < 2:
            return False
        return mine == (min(known) if column.better == "lower" else max(known))


def publish(tables: Mapping[str, Table], folder: Path) -> list[Path]:
    """Print tables and write each under its name; return the paths."""
    paths = []
    for name, table in tables.items():
        table.print()
        paths += table.save(folder, name)
    return paths


def _value(cell: Cell) -> float | None:
    value = cell.mean if isinstance(cell, Score) else cell
    return None if value is None or isinstance(value, str) or not math.isfinite(value) else value


def is_diverged(cell: Cell) -> bool:
    """Whether a score is not finite, as of a model that diverged."""
    value = cell.mean if isinstance(cell, Score) else cell
    return isinstance(value, float) and not math.isfinite(value)


def _text(cell: Cell, digits: int, plus_minus: str) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Score):
        spread = "" if cell.error is None else f" {plus_minus} {cell.error:.{digits}f}"
        return f"{cell.mean:.{digits}f}{spread}"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.{digits}f}" if isinstance(cell, float) else cell


_ESCAPED = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
}


def _escape(text: str) -> str:
    """Text as LaTeX prints it.

    >>> _escape("m^2, 5 %")
    'm\\\\textasciicircum{}2, 5 \\\\%'
    """
    return "".join(_ESCAPED.get(character, character) for character in text)
