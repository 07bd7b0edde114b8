"""`python -m lab.demo.eval`: test the finished runs; a table and a figure."""

from collections.abc import Sequence
from pathlib import Path

from lab.cli import main
from lab.demo.config import EvalConfig, TrainConfig
from lab.paths import runs_dir
from lab.runs import FinishedRun, finished_runs


def evaluate(config: EvalConfig) -> None:
    """Test every finished run on new vectors; print the table, draw the learning curves."""
    report(finished_runs(TrainConfig), config.out or runs_dir() / TrainConfig.app / "results")


def report(runs: Sequence[FinishedRun], folder: Path) -> None:
    """The table and the figure of some runs, on the screen and in a folder."""
    from lab.console import say_written
    from lab.demo.figures import learning_curves
    from lab.demo.report import write
    from lab.demo.scores import score_runs
    from lab.demo.tables import results_table
    from lab.table import publish

    results = score_runs(runs, folder / "scores")
    table = results_table(results)
    paths = [*publish({"table": table}, folder), learning_curves(results, folder / "learning.png")]
    say_written(folder, [*paths, write(results, table, folder / "report.html")])


if __name__ == "__main__":
    main(evaluate)
