"""`python -m lab.demo.table`: train every model, and write the table."""

from collections.abc import Iterator

from lab.cli import main
from lab.config import run_of_table
from lab.demo.config import TableConfig, TrainConfig


def table(config: TableConfig) -> None:
    """Train what has not been trained yet, one run after another, then compare all; repeat it to continue."""
    from lab.demo.eval import report
    from lab.demo.train import train
    from lab.paths import runs_dir
    from lab.runs import train_missing

    runs = train_missing(list(planned(config)), train)
    report(runs, runs_dir() / TrainConfig.app / f"{config.prefix}-results")


def planned(config: TableConfig) -> Iterator[TrainConfig]:
    """The options of every run."""
    for model in config.models:
        for seed in range(config.seeds):
            name = f"{config.prefix}-{model}-seed{seed}"
            yield run_of_table(config, TrainConfig, model, {}, seed=seed, name=name)


if __name__ == "__main__":
    main(table)
