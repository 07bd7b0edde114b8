"""Tables: the same rows in four formats, the best in bold."""

import csv
import io
import math
import re

import pytest
from rich.console import Console

from lab.table import Column, Score, Table


@pytest.fixture
def table() -> Table:
    columns = [
        Column("acc", "acc"),
        Column("method", "method"),
        Column("psnr", "pSNR", better="higher", digits=1),
        Column("error", "error_%", better="lower", digits=3),
    ]
    rows = [
        {"acc": 2, "method": "SENSE", "psnr": Score.of([33.0, 35.0]), "error": 0.5},
        {"acc": 2, "method": "mSENSE", "psnr": Score.of([35.0, 37.0]), "error": 0.25},
        {"acc": 3, "method": "SENSE", "psnr": Score.of([31.0, 32.0]), "error": 0.125},
        {"acc": 3, "method": "mSENSE", "psnr": None, "error": float("nan")},
    ]
    return Table(columns, rows, caption="Knees", group="acc")


def test_score_is_mean_and_standard_error():
    score = Score.of([1.0, 2.0, 3.0, 6.0])
    assert score.mean == 3.0
    assert score.error == pytest.approx((14 / 3) ** 0.5 / 2)
    assert Score.of([5.0]).error is None


def test_markdown_bolds_the_best_of_each_group(table):
    lines = table.markdown().splitlines()
    assert lines[2] == "| acc | method | pSNR | error_% |"
    assert lines[4] == "| 2 | SENSE | 34.0 ± 1.0 | 0.500 |"
    assert lines[5] == "| 2 | mSENSE | **36.0 ± 1.0** | **0.250** |"
    assert lines[6] == "| 3 | SENSE | 31.5 ± 0.5 | 0.125 |", "without a rival nothing is best"


def test_a_bar_in_a_name_does_not_end_the_cell_in_markdown():
    table = Table([Column("run"), Column("error")], [{"run": "a|b", "error": 1.0}])
    assert table.markdown().splitlines()[-1] == r"| a\|b | 1.0000 |"
    assert "a|b" in table.latex()
    assert "a|b" in table.csv()


def test_latex_escapes_and_rules_between_groups(table):
    latex = table.latex()
    assert r"error\_\%" in latex
    assert r"2 & mSENSE & \textbf{36.0 $\pm$ 1.0} & \textbf{0.250} \\" in latex
    assert latex.count(r"\midrule") == 2
    powers = Table([Column("rmse", r"RMSE (m^2~s\N)")]).latex()
    assert r"RMSE (m\textasciicircum{}2\textasciitilde{}s\textbackslash{}N)" in powers


def test_csv_keeps_full_precision_error_and_count(table):
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert rows[0]["psnr"] == "34.0"
    assert rows[0]["psnr_se"] == "1.0"
    assert rows[0]["psnr_n"] == "2"
    assert rows[3]["psnr"] == ""


def test_terminal_shows_every_cell(table, capsys):
    table.print()
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("Knees", "mSENSE", "36.0 ± 1.0", "0.125"))


@pytest.fixture
def screen(monkeypatch):
    """What a terminal of some width shows of a table, without control characters."""

    def shown(table: Table, width: int) -> list[str]:
        text = io.StringIO()
        terminal = Console(file=text, width=width, force_terminal=True, soft_wrap=True, color_system=None)
        monkeypatch.setattr("lab.table.console", lambda: terminal)
        table.print()
        return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.getvalue().splitlines()]

    return shown


def wide_table() -> Table:
    columns = [Column("model"), Column("a", better="lower"), Column("b"), Column("c", "extra", extra=True)]
    table = Table(
        columns, caption="A caption of many words, none of which is broken at the end of a line " * 2
    )
    for name in ("mno, lr 0.001, modes [xy]", "fno"):
        table.add(name, Score(0.1234, 0.0123, 3), Score(12.3456, 1.2345, 3), Score(1.0, 0.5, 3))
    return table


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_number_or_word_is_broken(screen, width):
    table, lines = wide_table(), screen(wide_table(), width)
    assert max(map(len, lines)) <= width
    assert any("0.1234 ± 0.0123" in line for line in lines)
    assert ("1.0000 ± 0.5000" in "".join(lines)) == (width >= 80)
    words = {word for line in lines for word in re.split(r"[\s│┃]+", line)}
    assert set(table.caption.split()) <= words
    assert {"mno,", "[xy]"} <= words, "brackets are no markup"


def test_text_keeps_room_beside_titles_that_could_fold(screen):
    table = Table([Column("model"), *(Column(key, f"{key} of a long title") for key in "abcd")])
    table.add("mno, lr 0.001", *(Score(1.5, 0.5, 2) for _ in "abcd"))
    lines = screen(table, 90)
    assert any("mno, lr 0.001" in line for line in lines)
    assert max(map(len, lines)) <= 90


def test_no_title_is_cut_within_a_word(screen):
    table = Table([Column("model"), *(Column(key, "astonishingly long") for key in "abc")])
    table.add("one of many models with a long name", 1.5, 2.5, 3.5)
    text = "\n".join(screen(table, 68))
    assert text.count("astonishingly") == 3
    assert "…" not in text


def test_save_writes_the_three_files(table, tmp_path):
    paths = table.save(tmp_path / "new", "result")
    assert [path.name for path in paths] == ["result.md", "result.csv", "result.tex"]
    assert (tmp_path / "new" / "result.md").read_text() == table.markdown()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_diverged_model_keeps_its_row_and_is_never_the_best(value, capsys):
    columns = [
        Column("model", "model"),
        Column("error", "error", better="lower"),
        Column("psnr", "p", "higher"),
    ]
    rows = [
        {"model": name, "error": Score.of(errors), "psnr": last}
        for name, errors, last in [
            ("a_1", [1.0, 2.0], 3.0),
            ("b", [2.0, 3.0], 2.0),
            ("c", [value, 1.0], value),
        ]
    ]
    table = Table(columns, rows)
    lines = table.markdown().splitlines()
    assert lines[2] == "| a_1 | **1.5000 ± 0.5000** | **3.0000** |"
    assert lines[4].startswith("| c | nan ± nan | ")
    assert "**" not in lines[4]
    assert lines[-1] == table.note() == "Diverged, with scores that are not finite: c."
    table.print()
    assert table.note() in capsys.readouterr().out
    assert r"\caption{Diverged" in table.latex()
    assert list(csv.DictReader(io.StringIO(table.csv())))[2]["error"] == "nan"


def test_a_single_diverged_seed_has_no_spread():
    assert math.isnan(Score.of([math.inf]).mean)
    assert Score.of([math.nan]).error is None
