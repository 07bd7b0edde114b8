"""`python -m pde.eval`: test the finished runs, or any weights on any data; tables and figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.cli import main
from lab.errors import UserError
from lab.memory import keep_freed
from lab.paths import runs_dir
from lab.runs import FinishedRun, finished_runs
from pde.config import EvalConfig, TrainConfig

if TYPE_CHECKING:
    from pde.scores import Result


def evaluate(config: EvalConfig) -> None:
    """Forecast the test samples, print the tables of errors, draw curves, spectra, fields and an animation."""
    import torch

    from pde.problems import OWN, PROBLEMS
    from pde.scores import problem_of, score_runs, score_weights, table_of

    keep_freed()
    torch.set_num_threads(config.threads or torch.get_num_threads())
    torch.set_flush_denormal(True)
    folder = config.out or runs_dir() / TrainConfig.app / "results"
    if config.weights:
        report(score_weights(config, folder / "scores"), config, folder)
        return
    runs = finished_runs(TrainConfig)
    tables: dict[str, list[FinishedRun]] = {}
    for problem in (*PROBLEMS, OWN) if config.problem is None else [config.problem]:
        for each in runs:
            if problem_of(each) == problem:
                tables.setdefault(table_of(each), []).append(each)
    if config.problem is not None and not tables:
        raise UserError(
            f"there is no finished run of {config.problem}; train one first with: "
            f"python -m pde.train --problem {config.problem}"
        )
    for name, of_table in tables.items():
        place = folder if len(tables) == 1 else folder / name
        report(score_runs(of_table, config, place / "scores"), config, place)


def report(results: "Sequence[Result]", config: EvalConfig, folder: Path) -> list[Path]:
    """Print the tables, write them in all formats and, if asked for, the figures; return the paths."""
    from lab.console import say_written
    from lab.files import write_text
    from lab.table import publish
    from pde.report import write
    from pde.tables import (
        horizon_table,
        metrics_table,
        places_table,
        ratios_table,
        results_table,
        samples_table,
    )

    makers = {
        "table": results_table,
        "ratios": ratios_table,
        "horizons": horizon_table,
        "places": places_table,
        "metrics": metrics_table,
    }
    tables = {name: table for name, make in makers.items() if (table := make(results)) is not None}
    paths = publish(tables, folder)
    write_text(folder / "per_sample.csv", samples_table(results).csv())
    paths.append(folder / "per_sample.csv")
    if config.figures:
        paths += _figures(results, config, folder)
    samples = config.samples if config.figures else []
    paths.append(write(results, list(tables.values()), samples, folder / "report.html"))
    say_written(folder, paths)
    return paths


def _figures(results: "Sequence[Result]", config: EvalConfig, folder: Path) -> list[Path]:
    from pde import figures
    from pde.tables import cases

    problem = results[0].problem
    paths = []
    if not problem.static:
        paths.append(figures.error_curves(results, folder / "errors.png"))
        paths.append(figures.correlations(results, folder / "correlations.png"))
    if any(result.test.geometry.places for result in results):
        paths.append(figures.error_places(results, folder / "places.png"))
    elif results[0].scores[0].spectrum:
        paths.append(figures.energy_spectra(results, folder / "spectra.png"))
        paths.append(figures.energies(results, folder / "energy.png"))
    for case in cases(results):
        here = figures.comparable(results, case)
        for sample in config.samples:
            paths.append(figures.panels(here, sample, folder / f"{case}_sample{sample}.png"))
            if not problem.static and not figures.is_line(here):
                paths.append(figures.animation(here, sample, folder / f"{case}_sample{sample}.gif"))
    return paths


if __name__ == "__main__":
    main(evaluate)
