"""A small text with many documents, a folder of one's own, and the commands in it."""

from pathlib import Path

import pytest

from lab import cli
from text.config import TrainConfig
from text.train import train


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 120 short documents, a little redundant, so that there is something to learn."""
    folder = tmp_path_factory.mktemp("texts")
    for number in range(120):
        lines = [f"line {line}: {number} times {line} is {number * line}\n" for line in range(20)]
        (folder / f"table{number}.txt").write_text("".join(lines))
    return folder


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, where runs/ and datasets/ appear."""
    monkeypatch.chdir(tmp_path)
    for name in ("MONARCH_DATA", "MONARCH_RUNS", "MONARCH_RUN_NAME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def config(texts: Path, *words: str) -> TrainConfig:
    """The options of a small run."""
    parsed: TrainConfig = cli.parse(
        TrainConfig, ["--preset", "smoke", "--data", str(texts), *words], prog="python -m text.train"
    )
    return parsed


@pytest.fixture
def train_small(texts: Path, workplace: Path):
    """Train a small model in this process; return its folder."""

    def run(name: str, *words: str) -> Path:
        train(config(texts, "--name", name, *words))
        return workplace / "runs" / "text" / name

    return run
