"""`python -m pde.table`: train every model of a problem under one budget, and write the table."""

import sys
from collections.abc import Iterator
from dataclasses import fields

from lab.cli import run
from pde.config import EvalConfig, TableConfig, TrainConfig
from pde.problems import DEFAULT, PROBLEMS


def table(config: TableConfig) -> None:
    """Train what has not been trained yet, one run after another, then evaluate all; repeat it to continue."""
    from lab.console import say
    from lab.gather import finished_runs
    from lab.paths import runs_dir
    from pde.evaluate import evaluate_runs
    from pde.report import report
    from pde.train import train

    wanted = list(runs(config))
    for number, options in enumerate(wanted, start=1):
        assert options.name is not None
        if is_finished(options.name):
            say(f"{number}/{len(wanted)} {options.name} is finished already")
            continue
        say(f"{number}/{len(wanted)} {options.name}")
        train(options)
    names = {options.name for options in wanted}
    mine = [found for found in finished_runs("pde") if found.folder.name in names]
    folder = runs_dir() / "pde" / f"{config.prefix}-results"
    report(evaluate_runs(mine, EvalConfig(threads=config.threads)), EvalConfig(out=folder))


def runs(config: TableConfig) -> Iterator[TrainConfig]:
    """The options of all runs of the table, viscosity by viscosity where there are several."""
    from lab.presets import read_preset

    problem = PROBLEMS[config.problem]
    flow, comparison = problem.case is not None, problem.comparison()
    preset = read_preset("pde" if config.problem == DEFAULT else f"pde/{config.problem}", config.preset)
    cases = {f"nu{nu:.0e}".replace("e-0", "e-"): {"nu": nu} for nu in config.nus} if flow else {"": {}}
    for case, of_case in cases.items():
        for model in config.models:
            for seed in range(config.seeds if model in config.seeded_models else 1):
                words = (config.prefix, model, case) if flow else (config.prefix, config.problem, model)
                chosen = preset | {
                    "preset": config.preset,
                    "problem": config.problem,
                    **comparison[model],
                    **of_case,
                    "seed": seed,
                    "minutes": config.minutes,
                    "recipe": config.recipe,
                    "resolution": config.resolution,
                    "threads": config.threads,
                    "name": "-".join((*words, f"seed{seed}")),
                    "resume": True,
                }
                if config.num_train is not None:
                    chosen["num_train"] = config.num_train
                known = {field.name for field in fields(TrainConfig)}
                yield TrainConfig(**{key: value for key, value in chosen.items() if key in known})


def is_finished(name: str) -> bool:
    """Whether the run of this name has reached its last epoch."""
    from lab.files import read_json
    from lab.paths import runs_dir

    path = runs_dir() / "pde" / name / "manifest.json"
    return path.is_file() and read_json(path).get("status") == "finished"


if __name__ == "__main__":
    sys.exit(run("python -m pde.table", {"": table}))
