"""`python -m pde.eval`: test the finished runs, or any weights on any data; a table and figures."""

import sys

from lab.cli import run
from pde.config import EvalConfig


def evaluate(config: EvalConfig) -> None:
    """Forecast the test samples, print the table of errors, draw curves, spectra, fields and an animation."""
    import torch

    from lab.gather import finished_runs
    from pde.evaluate import evaluate_runs, evaluate_weights
    from pde.report import report

    if config.threads is not None:
        torch.set_num_threads(config.threads)
    torch.set_flush_denormal(True)
    evaluations = evaluate_weights(config) if config.weights else evaluate_runs(finished_runs("pde"), config)
    report(evaluations, config)


if __name__ == "__main__":
    sys.exit(run("python -m pde.eval", {"": evaluate}))
