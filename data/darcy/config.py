"""What decides the numbers of a data set, and the options of the generator."""

from dataclasses import dataclass
from typing import ClassVar

from data.field_config import FieldConfig, Settings
from lab.errors import UserError


@dataclass(frozen=True)
class Darcy(Settings):
    """Darcy flow in a random medium of two permeabilities, as in the FNO paper."""

    problem: ClassVar[str] = "darcy"
    numbers_version: ClassVar[int] = 1

    resolution: int
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


@dataclass
class GenerateConfig(FieldConfig):
    """Options of the generator."""

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

    @property
    def settings(self) -> Darcy:
        """All that decides the numbers."""
        grid = 3 * self.resolution if self.grid is None else self.grid
        return Darcy(self.seed, self.resolution, grid, self.high, self.low)

    @property
    def default_name(self) -> str:
        """A name that tells the parameters, the unusual ones only where they are not the defaults."""
        n, grid = self.resolution, self.settings.grid
        name = f"darcy_N{self.num_samples}_{n}x{n}_seed{self.seed}"
        unusual = {
            f"_grid{grid}": grid != 3 * n,
            f"_a{self.high:g}-{self.low:g}": (self.high, self.low) != (12.0, 3.0),
        }
        return name + "".join(text for text, said in unusual.items() if said) + ".h5"
