"""`python -m mri.eval`: score the finished runs on the test scans; tables, figures, volumes."""

import sys

from lab.cli import run
from mri.config import EvalConfig


def evaluate(config: EvalConfig) -> None:
    """Make the paper's tables, and figures, from all finished runs."""
    from mri.evaluation import evaluate

    evaluate(config)


if __name__ == "__main__":
    sys.exit(run("python -m mri.eval", {"": evaluate}))
