"""Options of the commands; nothing here needs torch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from lab.checks import at_least
from lab.config import ExperimentConfig
from lab.demo.models import MODELS
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
