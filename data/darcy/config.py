"""What decides the numbers of a data set, and the options of the generator."""

from dataclasses import dataclass
from typing import Any

from data.fields.options import GeneratorOptions, Settings
from lab.errors import UserError


@dataclass(frozen=True)
class Darcy(Settings):
    """Darcy flow in a random medium of two permeabilities, as in the FNO paper."""

    problem = "darcy"
    numbers_version = 1

    grid: int
    high: float
    low: float

    def __post_init__(self) -> None:
        super().__post_init__()
        stride, rest = divmod(self.grid, self.resolution)
        if self.resolution < 4 or rest or stride % 2 == 0:
            raise UserError(
                "--grid must be an odd multiple of --resolution, 4 or more, so that the middle of every coarse cell "
                f"is the middle of a fine one; {self.grid} is no odd multiple of {self.resolution}."
            )
        if not self.high > self.low > 0:
            raise UserError(
                "--high and --low take two positive permeabilities, the first the larger, "
                f"not {self.high:g} and {self.low:g}."
            )


@dataclass(frozen=True)
class GenerateConfig(GeneratorOptions[Darcy]):
    """Options of the generator."""

    package = "data.darcy"
    kind = Darcy
    unusual = ("grid{grid}", "a{high:g}-{low:g}")

    num_samples: int = 1200
    """Number of samples, each a permeability and its pressure."""
    resolution: int = 64
    """Points per side in the file, in the middles of cells: (i + 1/2) / resolution."""
    grid: int | None = None
    """Cells per side of the solver, an odd multiple of the resolution; by default three times as many."""
    high: float = 12.0
    """Permeability where the random field is positive."""
    low: float = 3.0
    """Permeability where it is negative."""

    def derived(self) -> dict[str, Any]:
        return {"grid": 3 * self.resolution}
