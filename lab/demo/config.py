"""Options of the commands; nothing here needs torch."""

from dataclasses import dataclass, field
from math import isqrt
from pathlib import Path
from typing import ClassVar

from lab.checks import at_least
from lab.config import ExperimentConfig
from lab.demo.models import MODELS
from lab.errors import UserError
from lab.registry import Registry


@dataclass(frozen=True)
class DataOptions:
    """What is to be learned, and from how much."""

    group: ClassVar[str] = "data"

    size: int = 64
    """Length of the vectors; the hidden matrix is size x size."""
    num_train: int = 48
    """Examples to learn from; fewer than --size, and a dense matrix cannot be determined."""
    noise: float = 0.01
    """Standard deviation of the noise on the examples' outputs."""

    def __post_init__(self) -> None:
        at_least(self, 4, "size")
        if all(self.size % divisor for divisor in range(2, isqrt(self.size) + 1)):
            raise UserError(
                f"--size must be no prime number, not {self.size}: the hidden matrix is a Monarch matrix, whose blocks "
                f"divide it; {self.size + 1} will do."
            )
        at_least(self, 1, "num_train")
        at_least(self, 0, "noise")


@dataclass(frozen=True)
class TrainConfig(DataOptions, ExperimentConfig):
    """Options of `python -m lab.demo.train`."""

    app: ClassVar[str] = "demo"
    package: ClassVar[str] = "lab.demo"
    registry: ClassVar[Registry] = MODELS

    model: str = "monarch"
    """What to train."""
    flip: bool = False
    """Train on -x and -y too, at random: a linear map does not mind."""

    def __post_init__(self) -> None:
        DataOptions.__post_init__(self)
        ExperimentConfig.__post_init__(self)
        blocks = self.options.get("blocks")
        if blocks is not None and blocks > self.size:
            raise UserError(f"--blocks must be at most --size, {self.size}, not {blocks}.")


@dataclass(frozen=True)
class EvalConfig:
    """Options of `python -m lab.demo.eval`."""

    out: Path | None = None
    """Folder for the table and the figure; runs/demo/results by default."""


@dataclass(frozen=True)
class TableConfig(TrainConfig):
    """Options of `python -m lab.demo.table`: those of training, given to every run, and which runs."""

    every_model: ClassVar[bool] = True

    models: list[str] = field(default_factory=lambda: list(MODELS))
    """Models to train."""
    seeds: int = 1
    """Seeds of each, from 0."""
    prefix: str = "table"
    """Beginning of the runs' names; finished runs of the same name are not repeated."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "seeds")
        if not self.models:
            raise UserError("--models needs at least one entry.")
