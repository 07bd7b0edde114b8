"""The page "Your own data": its commands and its Python, from top to bottom."""

import re
import shlex
import warnings
from pathlib import Path

import pytest

from data.fields.__main__ import convert, info, show
from lab.cli import run
from pde.eval import evaluate
from pde.train import train

COMMANDS = {
    "data.fields": {"info": info, "show": show, "convert": convert},
    "pde.train": {"": train},
    "pde.eval": {"": evaluate},
}


def test_the_page_runs_from_a_raw_file_to_a_figure(root: Path, workplace: Path) -> None:
    page = (root / "docs" / "own-data.md").read_text().partition("\n## MRI")[0]
    blocks = re.findall(r"^```(python|console)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert {kind for kind, _ in blocks} == {"python", "console"}
    known: dict[str, object] = {}
    for kind, text in blocks:
        if kind == "python":
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*leave the range of the training data", UserWarning)
                exec(compile(text, "own-data.md", "exec"), known)
            continue
        for line in text.splitlines():
            python, m, module, *words = shlex.split(line)
            assert (python, m) == ("python", "-m")
            assert run(f"python -m {module}", COMMANDS[module], words) == 0, line
    results = workplace / "runs" / "pde" / "results"
    for name in ("waves_sample0.png", "waves_sample0.gif", "report.html", "errors.png", "per_sample.csv"):
        assert (results / name).stat().st_size > 0
    assert "RMSE (m)" in (results / "metrics.md").read_text()
    assert "5 steps of 0.05 s" in (results / "table.md").read_text()
    forecast = known["forecast"]
    assert forecast.frames.shape == (8, 16, 16, 100, 1)  # type: ignore[attr-defined]
    assert not forecast.frames.requires_grad  # type: ignore[attr-defined]
    assert forecast.left.shape == (8,)  # type: ignore[attr-defined]


def test_the_training_loop_is_short(root: Path) -> None:
    page = (root / "docs" / "own-data.md").read_text()
    loop = next(text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "AdamW" in text)
    assert len([line for line in loop.splitlines() if line.strip()]) <= 25
    assert "lab" not in loop


@pytest.mark.parametrize("heading", ["## PDE", "## MRI"])
def test_the_page_has_both_halves(root: Path, heading: str) -> None:
    assert f"\n{heading}\n" in (root / "docs" / "own-data.md").read_text()
