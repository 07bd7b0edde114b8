"""`python -m text.eval`: test the finished runs; tables and figures."""

from collections.abc import Sequence
from pathlib import Path

from lab.cli import main
from lab.paths import runs_dir
from lab.runs import FinishedRun, finished_runs
from text.config import EvalConfig, TrainConfig


def evaluate(config: EvalConfig) -> None:
    """Test every finished run on held-out text; print the table, draw the learning curves."""
    report(finished_runs(TrainConfig), config.out or runs_dir() / TrainConfig.app / "results")


def report(runs: Sequence[FinishedRun], folder: Path) -> None:
    """The table and the figure of some runs, on the screen and in a folder."""
    from lab.console import say_written
    from lab.files import write_text
    from lab.table import publish
    from text.figures import learning_curves
    from text.report import write
    from text.scores import score_runs
    from text.tables import results_table, sequences_table

    results = score_runs(runs, folder / "scores")
    table = results_table(results)
    paths = [*publish({"table": table}, folder), learning_curves(results, folder / "learning.png")]
    write_text(folder / "per_sequence.csv", sequences_table(results).csv())
    paths.append(folder / "per_sequence.csv")
    say_written(folder, [*paths, write(results, table, folder / "report.html")])


if __name__ == "__main__":
    main(evaluate)
