"""What every generator of fields has in common: the settings that decide the numbers, and options. Without torch."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

from data.fields.geometry import Boundary, Latitudes
from lab.checks import above, at_least
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
    resolution: int

    def __post_init__(self) -> None:
        at_least(self, 0, "seed")

    @property
    def parameters(self) -> dict[str, Any]:
        """Everything, by name."""
        return {**asdict(self), "numbers_version": self.numbers_version}

    @property
    def fingerprint(self) -> str:
        """Equal for two files exactly if sample i of one is sample i of the other."""
        return fingerprint({"problem": self.problem, **self.parameters})

    @property
    def columns(self) -> int:
        """Points along the second axis."""
        return self.resolution

    @property
    def num_frames(self) -> int | None:
        """Frames of a sample; none where a sample has one solution."""
        return getattr(self, "frames", None)


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class GeneratorOptions(Generic[S]):
    """Options of every generator of fields."""

    package: ClassVar[str]
    """The package that makes the samples; its module `generate` has the functions `layout` and `solve_samples`."""
    kind: ClassVar[type[Any]]
    """The class of the settings."""
    unusual: ClassVar[tuple[str, ...]]
    """What a file's name says of settings that are not the usual ones."""

    num_samples: int = 100
    """Number of samples."""
    seed: int = 0
    """Seed of the data set; each sample has its own stream."""
    resolution: int = 64
    """Points per side in the file."""
    out: Path | None = None
    """File to write; by default a name that tells the parameters, in datasets/."""
    shard: str = "1/1"
    """Which part to make, such as 3/16 for the third of sixteen jobs; the command join puts the parts together."""
    workers: int | None = None
    """Processes to run; by default one per CPU core."""

    def __post_init__(self) -> None:
        at_least(self, 1, "num_samples", "workers")
        _ = self.settings, self.samples  # both check what they are made of

    @property
    def settings(self) -> S:
        """All that decides the numbers, with the defaults that depend on other options filled in."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self.kind)}
        return self.kind(**chosen | {k: v for k, v in self.derived().items() if chosen[k] is None})

    def derived(self) -> dict[str, Any]:
        """Defaults that depend on other options."""
        return {}

    def solver_options(self) -> dict[str, Any]:
        """What `solve_samples` needs besides the settings; it must not change the numbers."""
        return {}

    @property
    def at_once(self) -> int:
        """Samples that a process solves and stores at a time."""
        return 4

    @property
    def processes(self) -> int:
        """Processes to run."""
        from data.parallel import cpu_count

        return self.workers or cpu_count()

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
    def path(self) -> Path:
        """The file that the command writes: all samples, or those of the shard."""
        whole, (part, parts) = self.out or datasets_dir() / self.default_name, self.shard_of
        return whole if parts == 1 else shard_path(whole, part, parts)

    @property
    def default_name(self) -> str:
        """A name that tells the parameters, the unusual ones only where they are not the defaults."""
        own = self.settings
        same = {key: getattr(self, key) for key in ("nu", "resolution") if hasattr(self, key)}
        usual = type(self)(**same).settings
        words = [own.problem.replace("-", "_")]
        words += [f"nu{short(self.nu)}"] if hasattr(self, "nu") else []
        words += [f"N{self.num_samples}"] + ([f"T{own.num_frames}"] if own.num_frames else [])
        words += [f"{own.resolution}x{own.columns}", f"seed{own.seed}"]
        said = ((text.format(**vars(own)), text.format(**vars(usual))) for text in self.unusual)
        return "_".join([*words, *(mine for mine, theirs in said if mine != theirs)]) + ".h5"


@dataclass(frozen=True)
class JoinConfig:
    """Options of the command that joins shards."""

    file: Path
    """The file to write: the name that the generator would have used without --shard."""
    remove_shards: bool = False
    """Delete the shards once the joined file is complete."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a user tells of a file that does not say it itself; it counts more than what the file says."""

    group: ClassVar[str] = "data"

    periodic: str = ""
    """Axes along which the fields are periodic: x, y or x,y."""
    walls: str = ""
    """Axes along which the domain ends, at walls or open: x, y or x,y."""
    sphere: Latitudes | None = None
    """The fields cover a sphere, rows from north to south on such latitudes, columns all around."""
    fields: str = ""
    """Fields to keep, in this order, such as density,Vx; of plain arrays, the arrays to read."""
    axes: str = ""
    """Axes of plain arrays in their order, such as sample,x,y,time, where sample,time,x,y,field does not fit."""
    time_step: float | None = None
    """Time between frames, where the file does not tell their times."""
    units: str = ""
    """Units for tables and figures, such as time=s,height=m."""
    keeps: str = ""
    """Symmetries of the equation, which --symmetries trains with: mirror x, mirror y (the points in reverse order),
    turn x, turn y (shifts along a periodic axis), transpose, half turn. Behind a colon, the fields that change their
    sign: mirror x:u,turn y."""

    def __post_init__(self) -> None:
        for flag, value in (("--periodic", self.periodic), ("--walls", self.walls)):
            if not set(words(value)) <= {"x", "y"}:
                raise UserError(f"{flag} takes x, y or x,y, not {value!r}.")
        if both := set(words(self.periodic)) & set(words(self.walls)):
            raise UserError(f"{min(both)} cannot be both --periodic and between --walls; give one of them.")
        if self.sphere not in (None, *get_args(Latitudes)):
            raise UserError(f"--sphere takes {' or '.join(get_args(Latitudes))}, not {self.sphere!r}.")
        if self.sphere is not None and (self.periodic or self.walls):
            raise UserError("--sphere says all of the boundary; leave out --periodic and --walls.")
        if not all(name and unit for name, unit in self.unit_of.items()):
            raise UserError(f"--units takes names and units, such as time=s,height=m, not {self.units!r}.")
        above(self, 0, "time_step")

    @property
    def boundaries(self) -> dict[str, Boundary]:
        """The boundary of each axis that is told."""
        told: dict[str, Boundary] = dict.fromkeys(words(self.periodic), "periodic")
        return told | dict.fromkeys(words(self.walls), "walls")

    @property
    def unit_of(self) -> dict[str, str]:
        """The units that are told, by name."""
        parts = (word.partition("=") for word in words(self.units))
        return {name.strip(): unit.strip() for name, _, unit in parts}


def words(text: str) -> list[str]:
    """What commas separate.

    >>> words("x, y"), words("")
    (['x', 'y'], [])
    """
    return [word.strip() for word in text.split(",") if word.strip()]


@dataclass(frozen=True)
class ShowConfig(Told):
    """Options of the viewer."""

    file: Path
    """A file of fields: generated, public, or your own in any format that docs/data.md lists."""
    samples: int = 3
    """Samples to draw."""
    frames: int = 6
    """Columns of the contact sheet, where the fields change with time."""
    out: Path | None = None
    """Folder for the pictures; by default the folder of the file."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "samples", "frames")


@dataclass(frozen=True)
class InfoConfig(Told):
    """Options of the summary."""

    file: Path
    """A file of fields in any format that docs/data.md lists."""


@dataclass(frozen=True)
class ConvertConfig(Told):
    """Options of the conversion."""

    file: Path
    """A file of fields in any format that docs/data.md lists."""
    out: Path
    """The file to write, in the format of this suite."""


def shard_path(whole: Path, part: int, parts: int) -> Path:
    """The file of one shard, beside the file that they will be joined into."""
    width = len(str(parts))
    return whole.with_name(f"{whole.stem}.shard-{part:0{width}}-of-{parts}{whole.suffix}")


def short(value: float) -> str:
    """A number in as few characters as possible.

    >>> short(1e-4), short(2.5e-3)
    ('1e-4', '2.5e-3')
    """
    mantissa, exponent = f"{value:.6e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
