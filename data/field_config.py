"""What the generators of fields have in common: the settings that decide the numbers, and the options."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from lab.errors import UserError
from lab.files import fingerprint
from lab.paths import datasets_dir

Precision = Literal["float64", "float32"]


@dataclass(frozen=True)
class Settings:
    """All that decides the numbers of sample i, and nothing else."""

    problem: ClassVar[str]
    """The name that the file and the commands use."""
    numbers_version: ClassVar[int]
    """To be raised with every change that alters the numbers of a sample."""

    seed: int

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UserError(f"--seed must be 0 or more, not {self.seed}.")

    @property
    def parameters(self) -> dict[str, Any]:
        """Everything, by name."""
        return {"problem": self.problem, **asdict(self), "numbers_version": self.numbers_version}

    @property
    def fingerprint(self) -> str:
        """Equal for two files exactly when sample i of one is sample i of the other."""
        return fingerprint(self.parameters)


@dataclass
class FieldConfig(ABC):
    """Options of every generator of fields."""

    num_samples: int = 100
    """Number of samples."""
    seed: int = 0
    """Seed of the data set; each sample has its own stream."""
    out: Path | None = None
    """File to write; by default a name that tells the parameters, in datasets/."""
    workers: int | None = None
    """Processes to run; by default one per CPU core."""

    def __post_init__(self) -> None:
        if self.num_samples < 1:
            raise UserError(f"--num-samples must be 1 or more, not {self.num_samples}.")
        if self.workers is not None and self.workers < 1:
            raise UserError(f"--workers must be 1 or more, not {self.workers}.")
        _ = self.settings  # they check themselves

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """What the options say of the numbers."""

    @property
    @abstractmethod
    def default_name(self) -> str:
        """A name that tells the parameters, the unusual ones only where they are not the defaults."""

    @property
    def path(self) -> Path:
        """The file that the command writes."""
        return self.out or datasets_dir() / self.default_name


@dataclass
class ShowConfig:
    """Options of the viewer."""

    file: Path
    """A generated file."""
    samples: int = 3
    """Samples to draw."""
    frames: int = 6
    """Columns of the contact sheet, where the fields change with time."""
    out: Path | None = None
    """Folder for the picture; by default the folder of the file."""
