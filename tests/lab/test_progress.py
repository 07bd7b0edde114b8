"""Progress: the time left is honest, also after a resume, and lines are spaced out."""

import io
import re

import pytest
from rich.console import Console

from lab import progress
from lab.progress import Progress


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def screen(monkeypatch):
    """A console that writes to memory; `terminal` decides whether it passes for one."""

    def use(terminal: bool, width: int = 120) -> io.StringIO:
        text = io.StringIO()
        fake = Console(file=text, force_terminal=terminal, width=width, soft_wrap=not terminal)
        monkeypatch.setattr(progress, "console", lambda: fake)
        return text

    return use


def test_time_left_follows_the_pace(screen):
    screen(False)
    clock = Clock()
    with Progress(10, "solving", clock_now=clock) as bar:
        assert bar.seconds_left is None
        clock.now += 20
        bar.advance(4)
        assert bar.seconds_left == pytest.approx(30)


def test_work_of_an_earlier_session_does_not_count_as_speed(screen):
    screen(False)
    clock = Clock()
    with Progress(10, "solving", clock_now=clock) as bar:
        bar.skip(8)
        assert bar.seconds_left is None
        clock.now += 5
        bar.advance()
        assert bar.seconds_left == pytest.approx(5)


def test_without_a_terminal_a_line_every_few_seconds(screen):
    text = screen(False)
    clock = Clock()
    with Progress(100, "solving", clock_now=clock, interval=5) as bar:
        for _ in range(100):
            clock.now += 1
            bar.advance(loss=0.5)
    lines = text.getvalue().splitlines()
    assert len(lines) == 21
    assert lines[0] == "solving: 5/100 samples (5 %), 0:05 elapsed, 1:35 left  loss 0.5"


def test_on_a_terminal_a_bar_with_time_left(screen):
    text = screen(True)
    with Progress(4, "solving", unit="step") as bar:
        bar.advance(4, loss=0.25)
    assert "4/4" in text.getvalue()
    assert "0:00 left" in text.getvalue()
    assert "loss 0.25" in text.getvalue()


@pytest.mark.parametrize(
    ("width", "told"), [(40, ""), (60, "epoch 1/2"), (80, "loss 5.123"), (120, "score 7.395")]
)
def test_a_narrow_terminal_shows_less_and_breaks_no_number(screen, width, told):
    text = screen(True, width)
    with Progress(12345, "training", unit="step", clock_now=Clock()) as bar:
        bar.advance(12000, epoch="1/2", loss=5.123, some_long_name_of_a_score=7.395)
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue()).replace("\r", "\n").strip().splitlines()[-1]
    assert len(last) <= width
    assert all(part in last for part in ("12000/12345", "0:00:00", "0:00 left", told))
    assert "…" not in last
