"""`python -m mri.train`: train a reconstruction method, or choose its one number."""

import sys

from lab.cli import run
from mri.config import TrainConfig


def train(config: TrainConfig) -> None:
    """Train a method for accelerated MRI; without data, on synthetic knees."""
    from mri.training import train

    train(config)


if __name__ == "__main__":
    sys.exit(run("python -m mri.train", {"": train}))
