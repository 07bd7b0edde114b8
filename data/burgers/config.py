"""What decides the numbers of a data set, and the options of the generator."""

from dataclasses import dataclass
from typing import ClassVar

from data.field_config import FieldConfig, Precision, Settings
from data.names import short
from lab.errors import UserError


@dataclass(frozen=True)
class Burgers(Settings):
    """A viscous flow without pressure in the unit square, at rest on all four walls."""

    problem: ClassVar[str] = "burgers-walls"
    numbers_version: ClassVar[int] = 1

    nu: float
    frames: int
    interval: float
    resolution: int
    grid: int
    initial_std: float
    precision: Precision

    def __post_init__(self) -> None:
        super().__post_init__()
        for flag, value in (
            ("--nu", self.nu),
            ("--interval", self.interval),
            ("--initial-std", self.initial_std),
        ):
            if not value > 0:
                raise UserError(f"{flag} takes a positive number, not {value:g}.")
        if self.frames < 2:
            raise UserError(
                f"--frames must be 2 or more, the first being the initial field, not {self.frames}."
            )
        if not 4 <= self.resolution <= self.grid:
            raise UserError(
                "--resolution must be 4 or more and --grid no smaller, "
                f"not {self.resolution} and {self.grid}."
            )


@dataclass
class GenerateConfig(FieldConfig):
    """Options of the generator."""

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

    @property
    def settings(self) -> Burgers:
        """All that decides the numbers."""
        return Burgers(
            seed=self.seed,
            nu=self.nu,
            frames=self.frames,
            interval=self.interval,
            resolution=self.resolution,
            grid=2 * self.resolution if self.grid is None else self.grid,
            initial_std=self.initial_std,
            precision=self.precision,
        )

    @property
    def default_name(self) -> str:
        """A name that tells the parameters, the unusual ones only where they are not the defaults."""
        own, usual = self.settings, GenerateConfig(resolution=self.resolution).settings
        size = f"N{self.num_samples}_T{own.frames}_{own.resolution}x{own.resolution}"
        name = f"burgers_walls_nu{short(own.nu)}_{size}_seed{own.seed}"
        unusual = {
            f"_dt{own.interval:g}": own.interval != usual.interval,
            f"_grid{own.grid}": own.grid != usual.grid,
            f"_std{own.initial_std:g}": own.initial_std != usual.initial_std,
            f"_{own.precision}": own.precision != usual.precision,
        }
        return name + "".join(text for text, said in unusual.items() if said) + ".h5"
