"""What decides the numbers of a data set, and the options of the commands."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from data.names import short
from lab.errors import UserError
from lab.files import fingerprint
from lab.paths import datasets_dir

NUMBERS_VERSION = 1
"""To be raised with every change in solver.py or initial.py that alters the numbers of a sample."""

Precision = Literal["float64", "float32"]


@dataclass(frozen=True)
class Flow:
    """All that decides the numbers of sample i, and nothing else."""

    nu: float
    final_time: int
    grid: int
    resolution: int
    seed: int
    initial_std: float
    precision: Precision

    def __post_init__(self) -> None:
        if not self.nu > 0:
            raise UserError(f"--nu takes a positive viscosity, not {self.nu:g}.")
        if not self.initial_std > 0:
            raise UserError(f"--initial-std takes a positive standard deviation, not {self.initial_std:g}.")
        if self.final_time < 1 or self.seed < 0:
            raise UserError(
                f"--final-time must be 1 or more and --seed 0 or more, not {self.final_time} and {self.seed}."
            )
        if self.resolution < 4 or self.grid < self.resolution or self.grid % self.resolution:
            raise UserError(
                f"--grid must be a multiple of --resolution, whose points are every so-manieth point of the "
                f"grid; {self.grid} is not a multiple of {self.resolution}."
            )

    @property
    def fingerprint(self) -> str:
        """Equal for two files exactly when sample i of one is sample i of the other."""
        return fingerprint({**asdict(self), "numbers_version": NUMBERS_VERSION})


@dataclass
class GenerateConfig:
    """Options of the generator."""

    nu: float = 1e-3
    """Viscosity."""
    num_samples: int = 1200
    """Number of trajectories."""
    final_time: int | None = None
    """Number of frames, one per unit time; by default 50, 30 or 20 for a viscosity of 1e-3, 1e-4 or 1e-5."""
    grid: int | None = None
    """Solver grid; by default 64, 128 or 256 for a viscosity of 1e-3, 1e-4 or 1e-5."""
    resolution: int = 64
    """Points per side in the file; it must divide the grid."""
    seed: int = 0
    """Seed of the data set; each sample has its own stream."""
    initial_std: float = 0.262
    """Spread of the initial field: 0.262 as in the released data, 0.185 as in later code, 0.043 as in the paper."""
    precision: Precision = "float64"
    """Arithmetic of the solver; the file holds float32 in any case."""
    out: Path | None = None
    """File to write; by default a name that tells the parameters, in datasets/."""
    shard: str = "1/1"
    """Which part to make, such as 3/16 for the third of sixteen jobs; the command join puts the parts together."""
    workers: int | None = None
    """Processes to run; by default one per CPU core, or one for a GPU."""
    batch_size: int | None = None
    """Samples solved at once by a process; changes the speed and nothing else."""
    device: str = "cpu"
    """Where to solve: cpu, cuda, cuda:1."""

    def __post_init__(self) -> None:
        if self.num_samples < 1:
            raise UserError(f"--num-samples must be 1 or more, not {self.num_samples}.")
        for flag, value in (("--workers", self.workers), ("--batch-size", self.batch_size)):
            if value is not None and value < 1:
                raise UserError(f"{flag} must be 1 or more, not {value}.")
        _ = self.flow, self.samples  # both check what they are made of

    @property
    def flow(self) -> Flow:
        """The flow, with the defaults that depend on the viscosity filled in."""
        usual_time, usual_grid = (50, 64) if self.nu >= 1e-3 else (30, 128) if self.nu >= 1e-4 else (20, 256)
        return Flow(
            nu=self.nu,
            final_time=usual_time if self.final_time is None else self.final_time,
            grid=max(usual_grid, self.resolution) if self.grid is None else self.grid,
            resolution=self.resolution,
            seed=self.seed,
            initial_std=self.initial_std,
            precision=self.precision,
        )

    @property
    def shard_of(self) -> tuple[int, int]:
        """(3, 16) for `--shard 3/16`."""
        part, _, parts = self.shard.partition("/")
        if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts) <= self.num_samples):
            raise UserError(
                f"--shard takes a part and a number of parts up to --num-samples, such as 3/16, "
                f"not {self.shard!r} for {self.num_samples} samples."
            )
        return int(part), int(parts)

    @property
    def samples(self) -> range:
        """The numbers of the samples that this shard makes."""
        part, parts = self.shard_of
        return range(self.num_samples * (part - 1) // parts, self.num_samples * part // parts)

    @property
    def whole_path(self) -> Path:
        """The file with all samples."""
        return self.out or datasets_dir() / self.default_name

    @property
    def path(self) -> Path:
        """The file that this command writes: all samples, or those of the shard."""
        part, parts = self.shard_of
        return self.whole_path if parts == 1 else shard_path(self.whole_path, part, parts)

    @property
    def default_name(self) -> str:
        """A name that tells the parameters, the unusual ones only where they are not the defaults."""
        flow, usual = self.flow, GenerateConfig(nu=self.nu, resolution=self.resolution).flow
        size = f"N{self.num_samples}_T{flow.final_time}_{flow.resolution}x{flow.resolution}"
        name = f"navier_stokes_nu{short(flow.nu)}_{size}_seed{flow.seed}"
        unusual = {
            f"_grid{flow.grid}": flow.grid != usual.grid,
            f"_std{flow.initial_std:g}": flow.initial_std != usual.initial_std,
            f"_{flow.precision}": flow.precision != usual.precision,
        }
        return name + "".join(text for text, said in unusual.items() if said) + ".h5"

    def attributes(self) -> dict[str, Any]:
        """What the file says of itself."""
        return {
            **asdict(self.flow),
            "fingerprint": self.flow.fingerprint,
            "numbers_version": NUMBERS_VERSION,
            "first_sample": self.samples.start,
            "num_samples": len(self.samples),
        }


@dataclass
class JoinConfig:
    """Options of the command that joins shards."""

    file: Path
    """The file to write: the name that the generator would have used without --shard."""
    remove_shards: bool = False
    """Delete the shards once the joined file is complete."""


@dataclass
class ShowConfig:
    """Options of the viewer."""

    file: Path
    """A generated file or one of the public MATLAB files."""
    samples: int = 4
    """Rows of the contact sheet and tiles of the animation."""
    frames: int = 6
    """Columns of the contact sheet."""
    out: Path | None = None
    """Folder for the pictures; by default the folder of the file."""


def shard_path(whole: Path, part: int, parts: int) -> Path:
    """The file of one shard, beside the file that they will be joined into."""
    width = len(str(parts))
    return whole.with_name(f"{whole.stem}.shard-{part:0{width}}-of-{parts}{whole.suffix}")
