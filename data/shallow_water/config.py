"""What decides the numbers of a data set, and the options of the generator."""

from dataclasses import dataclass

from data.fields.options import GeneratorOptions, Settings
from lab.checks import above, at_least
from lab.errors import UserError

TOGETHER = 10
"""Samples solved at once, always the same ones."""


@dataclass(frozen=True)
class ShallowWater(Settings):
    """Weather of a single layer of water on a sphere with the size and spin of the Earth."""

    problem = "shallow-water"
    numbers_version = 2

    frames: int
    spin_up: int
    mach: float
    degree_scale: float
    steps_per_hour: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resolution < 8 or self.resolution % 2:
            raise UserError(
                f"--resolution must be an even number from 8, half of the longitudes, not {self.resolution}."
            )
        at_least(self, 2, "frames")
        at_least(self, 1, "steps_per_hour")
        at_least(self, 0, "spin_up")
        above(self, 0, "mach", "degree_scale")

    @property
    def columns(self) -> int:
        return 2 * self.resolution


@dataclass(frozen=True)
class GenerateConfig(GeneratorOptions[ShallowWater]):
    """Options of the generator."""

    package = "data.shallow_water"
    kind = ShallowWater
    unusual = ("spin{spin_up}", "mach{mach:g}", "scale{degree_scale:g}", "steps{steps_per_hour}")

    num_samples: int = 300
    """Number of trajectories."""
    resolution: int = 64
    """Rows of the Legendre-Gauss grid; there are twice as many longitudes."""
    frames: int = 24
    """Number of frames, one per hour."""
    spin_up: int = 6
    """Hours between the random start and the first frame, in which height and wind adjust to each other."""
    mach: float = 4.0
    """The solver's measure of the random vorticity; 4 gives winds of 17 m/s, 0.06 of the wave speed."""
    degree_scale: float = 12.0
    """The random start is tapered by exp(-(degree / this)²)."""
    steps_per_hour: int = 8
    """Time steps of the solver per hour."""

    @property
    def at_once(self) -> int:
        return TOGETHER
