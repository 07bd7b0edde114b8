"""What decides the numbers of a data set, and the options of the generator."""

from dataclasses import dataclass
from typing import Any

from data.fields.options import GeneratorOptions, Precision, Settings
from lab.checks import above, at_least
from lab.errors import UserError
from lab.files import fingerprint

POINTS_ON_CPU, POINTS_ON_GPU = 16 * 64 * 64, 1024 * 64 * 64
"""Grid points that are solved at once: as many as stay in a core's cache, or as fill a GPU."""


@dataclass(frozen=True)
class Flow(Settings):
    """A viscous flow on the unit torus with the forcing of the FNO benchmark."""

    problem = "navier-stokes"
    numbers_version = 1

    nu: float
    final_time: int
    grid: int
    initial_std: float
    precision: Precision

    def __post_init__(self) -> None:
        super().__post_init__()
        above(self, 0, "nu", "initial_std")
        at_least(self, 1, "final_time")
        if self.resolution < 4 or self.grid < self.resolution or self.grid % self.resolution:
            raise UserError(
                "--grid must be a multiple of --resolution, 4 or more, because the file keeps every k-th point of "
                f"the solver's grid; {self.grid} is not a multiple of {self.resolution}."
            )

    @property
    def fingerprint(self) -> str:
        """Without the name of the problem, as the first files had it."""
        return fingerprint(self.parameters)

    @property
    def num_frames(self) -> int:
        return self.final_time

    @property
    def together(self) -> int:
        """Samples that a CPU solves at once, always the same ones."""
        return min(max(1, POINTS_ON_CPU // self.grid**2), 16)


@dataclass(frozen=True)
class GenerateConfig(GeneratorOptions[Flow]):
    """Options of the generator."""

    package = "data.navier_stokes"
    kind = Flow
    unusual = ("grid{grid}", "std{initial_std:g}", "{precision}")

    nu: float = 1e-3
    """Viscosity."""
    num_samples: int = 1200
    """Number of trajectories."""
    final_time: int | None = None
    """Number of frames, one per unit time; by default 50, 30 or 20 for a viscosity of 1e-3, 1e-4 or 1e-5."""
    grid: int | None = None
    """Solver grid; by default 64, 128 or 256 for a viscosity of 1e-3, 1e-4 or 1e-5."""
    max_grid: int = 256
    """Finest solver grid that the viscosity may choose by default."""
    resolution: int = 64
    """Points per side in the file; it must divide the grid."""
    initial_std: float = 0.262
    """Spread of the initial field: 0.262 as in the released data, 0.185 as in later code, 0.043 as in the paper."""
    precision: Precision = "float64"
    """Arithmetic of the solver; the file holds float32 in any case."""
    workers: int | None = None
    """Processes to run; by default one per CPU core, or one for a GPU."""
    batch_size: int | None = None
    """With --device cuda: samples solved at once."""
    device: str = "cpu"
    """Where to solve: cpu, cuda, cuda:1."""

    def __post_init__(self) -> None:
        at_least(self, 1, "batch_size")
        if self.batch_size is not None and self.device == "cpu":
            raise UserError("--batch-size is for --device cuda; a CPU solves samples in fixed groups.")
        super().__post_init__()

    def derived(self) -> dict[str, Any]:
        time, grid = (50, 64) if self.nu >= 1e-3 else (30, 128) if self.nu >= 1e-4 else (20, 256)
        return {"final_time": time, "grid": max(min(grid, self.max_grid), self.resolution)}

    def solver_options(self) -> dict[str, Any]:
        return {"device": self.device}

    @property
    def at_once(self) -> int:
        if self.device == "cpu":
            return self.settings.together
        return self.batch_size or max(1, POINTS_ON_GPU // self.settings.grid**2)

    @property
    def processes(self) -> int:
        return super().processes if self.device == "cpu" else self.workers or 1
