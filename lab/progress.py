"""A progress bar with time left: Rich on a terminal, a plain line every few seconds elsewhere."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from lab.console import console

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


BAR = 5
"""Columns that the bar itself keeps on a narrow terminal."""


def clock(seconds: float) -> str:
    """Hours, minutes and seconds as people write them.

    >>> clock(7), clock(83), clock(3661)
    ('0:07', '1:23', '1:01:01')
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class Progress:
    """Count `total` units of work and say how much time is left.

    `fields` passed to `advance` are shown behind the bar (a loss, a speed). Work that was done in an
    earlier session is announced with `skip`, so that the time left is reckoned from this session's pace.

    >>> progress = Progress(3, "counting", unit="number")
    >>> progress.advance(2)
    >>> progress.line()
    'counting: 2/3 numbers (66 %), 0:00 elapsed, 0:00 left'
    """

    def __init__(
        self,
        total: int,
        label: str,
        unit: str = "sample",
        *,
        interval: float = 5.0,
        clock_now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.label, self.unit, self.interval = total, label, unit, interval
        self.done = 0
        self._skipped = 0
        self._fields: dict[str, Any] = {}
        self._now = clock_now
        self._start = self._last_line = clock_now()
        self._bar: RichProgress | None = None

    def __enter__(self) -> Self:
        self._start = self._last_line = self._now()
        if console().is_terminal and not console().quiet:
            self._open_bar()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self.done > self._skipped and exception[0] is None:
            self._print_line()

    def skip(self, n: int) -> None:
        """Count `n` units as done before this session began."""
        self._skipped += n
        self._step(n)

    def advance(self, n: int = 1, **fields: Any) -> None:
        """Count `n` more units as done; remember what to show beside them."""
        self._fields |= fields
        self._step(n)

    @property
    def seconds_left(self) -> float | None:
        """Time left at this session's pace; None until something has been done in it."""
        fresh = self.done - self._skipped
        return (self._now() - self._start) / fresh * (self.total - self.done) if fresh else None

    def line(self) -> str:
        """The plain line: label, count, percentage, elapsed and remaining time, fields."""
        percent = 100 * self.done // max(self.total, 1)
        left = "" if self.seconds_left is None else f", {clock(self.seconds_left)} left"
        plural = "" if self.total == 1 else "s"
        count = f"{self.done}/{self.total} {self.unit}{plural} ({percent} %)"
        text = f"{self.label}: {count}, {clock(self._now() - self._start)} elapsed{left}"
        return text + (f"  {self._fields_text()}" if self._fields else "")

    def _fields_text(self, room: int | None = None) -> str:
        """All fields, or the first ones, as many as fit."""
        shown = [
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in self._fields.items()
        ]
        while room is not None and shown and len("  ".join(shown)) > room:
            shown.pop()
        return "  ".join(shown)

    def _step(self, n: int) -> None:
        self.done += n
        if self._bar is not None:
            left = "-:--" if self.seconds_left is None else clock(self.seconds_left)
            (task,) = self._bar.task_ids
            beside = f"{self.label} {self.total}/{self.total} 0:00:00 {left} left "
            fields = self._fields_text(console().width - len(beside) - BAR - 1)
            self._bar.update(task, completed=self.done, fields=fields, left=left)
        elif self._now() - self._last_line >= self.interval:
            self._print_line()

    def _print_line(self) -> None:
        console().print(self.line(), markup=False)
        self._last_line = self._now()

    def _open_bar(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        # On a narrow terminal the bar gives way, and no number.
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[left]} left"),
            TextColumn("[dim]{task.fields[fields]}"),
        )
        self._bar = RichProgress(*columns, console=console(), refresh_per_second=4)
        self._bar.add_task(self.label, total=self.total, completed=self.done, fields="", left="-:--")
        self._bar.start()
