"""Options of the demonstration."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from lab.config import ExperimentConfig
from lab.errors import UserError


@dataclass
class DemoConfig(ExperimentConfig):
    """Options of `python -m lab.demo`."""

    app: ClassVar[str] = "demo"

    model: Literal["monarch", "dense"] = "monarch"
    """A Monarch matrix, or the dense matrix it is compared with."""
    size: int = 64
    """Length of the vectors; the hidden matrix is size x size."""
    samples: int = 48
    """Examples to learn from; fewer than --size, and a dense matrix cannot be determined."""
    noise: float = 0.01
    """Standard deviation of the noise on the examples' outputs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 4 or self.samples < 1:
            raise UserError(
                f"--size must be at least 4 and --samples at least 1, not {self.size} and {self.samples}."
            )

    def label(self) -> str:
        return f"{self.model}-{super().label()}"
