"""`python -m pde.eval`: test the finished runs, or any weights on any data; a table and figures."""

import sys

from lab.cli import run
from pde.config import EvalConfig


def evaluate(config: EvalConfig) -> None:
    """Forecast the test samples, print the table of errors, draw curves, spectra, fields and an animation."""
    import torch

    from lab.errors import UserError
    from lab.gather import finished_runs
    from pde.evaluate import evaluate_runs, evaluate_weights, problem_of
    from pde.problems import PROBLEMS
    from pde.report import report

    if config.threads is not None:
        torch.set_num_threads(config.threads)
    torch.set_flush_denormal(True)
    if config.weights:
        report(evaluate_weights(config), config)
        return
    runs = finished_runs("pde")
    found = [name for name in PROBLEMS if any(problem_of(run) == name for run in runs)]
    if config.problem is not None and config.problem not in found:
        raise UserError(
            f"there is no finished run of {config.problem}; train one first with: "
            f"python -m pde.train --problem {config.problem}"
        )
    for name in found if config.problem is None else [config.problem]:
        report(evaluate_runs([run for run in runs if problem_of(run) == name], config), config)


if __name__ == "__main__":
    sys.exit(run("python -m pde.eval", {"": evaluate}))
