"""What decides the numbers of a data set, and the options of the generator."""

from dataclasses import dataclass
from typing import ClassVar

from data.field_config import FieldConfig, Settings
from lab.errors import UserError


@dataclass(frozen=True)
class ShallowWater(Settings):
    """Weather of a single layer of water on a sphere with the size and spin of the Earth."""

    problem: ClassVar[str] = "shallow-water"
    numbers_version: ClassVar[int] = 2

    resolution: int
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
        if self.frames < 2 or self.spin_up < 0 or self.steps_per_hour < 1:
            raise UserError(
                "--frames must be 2 or more, --spin-up 0 or more and --steps-per-hour 1 or more, "
                f"not {self.frames}, {self.spin_up} and {self.steps_per_hour}."
            )
        if not (self.mach > 0 and self.degree_scale > 0):
            raise UserError(
                "--mach and --degree-scale take positive numbers, "
                f"not {self.mach:g} and {self.degree_scale:g}."
            )


@dataclass
class GenerateConfig(FieldConfig):
    """Options of the generator."""

    num_samples: int = 300
    """Number of trajectories."""
    resolution: int = 64
    """Rows of the Legendre-Gauss grid; there are twice as many longitudes."""
    frames: int = 24
    """Number of frames, one an hour."""
    spin_up: int = 6
    """Hours between the random start and the first frame, in which height and wind adjust to each other."""
    mach: float = 4.0
    """The solver's measure of the random vorticity; 4 gives winds of 17 m/s, 0.06 of the wave speed."""
    degree_scale: float = 12.0
    """The random start is tapered by exp(-(degree / this)²)."""
    steps_per_hour: int = 8
    """Time steps of the solver per hour."""

    @property
    def settings(self) -> ShallowWater:
        """All that decides the numbers."""
        return ShallowWater(
            seed=self.seed,
            resolution=self.resolution,
            frames=self.frames,
            spin_up=self.spin_up,
            mach=self.mach,
            degree_scale=self.degree_scale,
            steps_per_hour=self.steps_per_hour,
        )

    @property
    def default_name(self) -> str:
        """A name that tells the parameters, the unusual ones only where they are not the defaults."""
        own, usual = self.settings, GenerateConfig().settings
        size = f"N{self.num_samples}_T{own.frames}_{own.resolution}x{2 * own.resolution}"
        unusual = {
            f"_spin{own.spin_up}": own.spin_up != usual.spin_up,
            f"_mach{own.mach:g}": own.mach != usual.mach,
            f"_scale{own.degree_scale:g}": own.degree_scale != usual.degree_scale,
            f"_steps{own.steps_per_hour}": own.steps_per_hour != usual.steps_per_hour,
        }
        said = "".join(text for text, differs in unusual.items() if differs)
        return f"shallow_water_{size}_seed{own.seed}{said}.h5"
