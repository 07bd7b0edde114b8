"""`python -m pde.table`: train every model of a problem under one budget, and write the table."""

from collections.abc import Iterator

from lab.cli import main
from lab.config import run_of_table
from pde.config import EvalConfig, TableConfig, TrainConfig
from pde.models import comparison


def table(config: TableConfig) -> None:
    """Train what has not been trained yet, one run after another, then evaluate all; repeat it to continue."""
    from lab.paths import runs_dir
    from lab.runs import train_missing
    from pde.eval import report
    from pde.scores import score_runs
    from pde.train import train

    runs = train_missing(list(planned(config)), train)
    folder = runs_dir() / TrainConfig.app / f"{config.prefix}-results"
    evaluation = EvalConfig(threads=config.threads)
    report(score_runs(runs, evaluation, folder / "scores"), evaluation, folder)


def planned(config: TableConfig) -> Iterator[TrainConfig]:
    """The options of all runs of the table, case by case where there are several."""
    problem = config.about
    rows = comparison(problem.geometry)
    values = [None] if problem.case is None else [{problem.case: value} for value in config.nus]
    for case in values:
        named = problem.name if case is None else problem.case_name(*case.values())
        for row in config.models:
            model, options = rows[row]
            for seed in range(config.seeds if row in config.seeded_models else 1):
                name = f"{config.prefix}-{named}-{row}-seed{seed}"
                yield run_of_table(config, TrainConfig, model, options, seed=seed, name=name, **case or {})


if __name__ == "__main__":
    main(table)
