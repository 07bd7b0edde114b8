"""What decides the numbers of a data set, and the options of the generator."""

from dataclasses import dataclass
from typing import Any

from data.fields.options import GeneratorOptions, Precision, Settings
from lab.checks import above, at_least
from lab.errors import UserError


@dataclass(frozen=True)
class Burgers(Settings):
    """A viscous flow without pressure in the unit square, at rest on all four walls."""

    problem = "burgers-walls"
    numbers_version = 1

    nu: float
    frames: int
    interval: float
    grid: int
    initial_std: float
    precision: Precision

    def __post_init__(self) -> None:
        super().__post_init__()
        above(self, 0, "nu", "interval", "initial_std")
        at_least(self, 2, "frames", remedy=", the first being the initial field")
        if not 4 <= self.resolution <= self.grid:
            raise UserError(
                "--resolution must be 4 or more and --grid no smaller, "
                f"not {self.resolution} and {self.grid}."
            )


@dataclass(frozen=True)
class GenerateConfig(GeneratorOptions[Burgers]):
    """Options of the generator."""

    package = "data.burgers"
    kind = Burgers
    unusual = ("dt{interval:g}", "grid{grid}", "std{initial_std:g}", "{precision}")

    num_samples: int = 1200
    """Number of trajectories."""
    nu: float = 1e-2
    """Viscosity."""
    frames: int = 20
    """Number of frames, the first being the initial field."""
    interval: float = 0.05
    """Time between frames."""
    resolution: int = 64
    """Points per side in the file, in the middles of cells: (i + 1/2) / resolution."""
    grid: int | None = None
    """Points per side of the solver; by default twice the resolution."""
    initial_std: float = 0.5
    """Spread of either component of the initial velocity."""
    precision: Precision = "float32"
    """Arithmetic of the solver, whose grid errs more than float32; the file holds float32 in any case."""

    def derived(self) -> dict[str, Any]:
        return {"grid": 2 * self.resolution}
