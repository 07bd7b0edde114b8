"""Options of the commands; nothing here needs torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from data.fields.options import Precision, Told
from lab.checks import above, at_least, flag
from lab.config import ExperimentConfig, ExportOptions, settle
from lab.errors import UserError
from lab.registry import Registry
from pde.models import MODELS, check_geometry, comparison
from pde.models.options import CARRIED, designed
from pde.problems import DEFAULT, OWN, PROBLEMS, Problem, ProblemName, own_problem

if TYPE_CHECKING:
    from data.fields.reader import Fields

Recipe = Literal["markov", "fno", "map"]
OWN_OPTIONS = (*(entry.name for entry in fields(Told)), "frames_in")
"""Options that only own data takes."""
NUS = [1e-3, 1e-4, 1e-5]
"""The viscosities of the paper."""


@dataclass(frozen=True)
class DataOptions(Told):
    """Where the samples come from and how they are shared out."""

    group: ClassVar[str] = "data"

    problem: ProblemName = DEFAULT
    """navier-stokes: a periodic flow. darcy, burgers-walls: between walls. shallow-water: on the sphere. own: whatever
    --data holds. A command with --data and without --problem takes what the file says."""
    nu: float = 1e-3
    """navier-stokes: viscosity; 1e-3, 1e-4 and 1e-5 are the paper's."""
    data: Path | None = None
    """A file of samples, generated or public; made when not given."""
    num_train: int = 1000
    """Samples to train on, the first of the file."""
    num_val: int = 20
    """Samples that choose the best weights, those after the training ones."""
    num_test: int = 200
    """Samples to test on, the last; training never reads them."""
    resolution: int | None = None
    """Points per side to train and test on: every k-th point of a file that has more. The data of the problems with
    walls and of the sphere is made with this many points."""
    solver_precision: Precision = "float64"
    """navier-stokes, generated data: arithmetic of the solver."""
    max_grid: int = 256
    """navier-stokes, generated data: finest solver grid; a viscosity of 1e-3, 1e-4 or 1e-5 asks for 64, 128 or 256."""
    frames_in: int = 1
    """own: frames that are given before the forecast begins."""
    memory_gb: float = 4.0
    """Samples that take more gigabytes than this are not held in memory but read whenever they are needed."""

    def __post_init__(self) -> None:
        Told.__post_init__(self)
        at_least(self, 1, "frames_in", "num_train", "num_val", "num_test")
        at_least(self, 4, "resolution")
        at_least(self, 0, "memory_gb")
        if self.problem == OWN and self.data is None:
            raise UserError("--problem own needs --data, the file of samples.")
        usual = {entry.name: entry.default for entry in fields(DataOptions)}
        for key in OWN_OPTIONS:
            if self.problem != OWN and getattr(self, key) != usual[key]:
                raise UserError(f"{flag(key)} is for --problem own; with {self.problem} it is settled.")
        problem = self.about
        every = {key for each in PROBLEMS.values() for key in each.options} - {"resolution"}
        made_by = f"; make other data with python -m {problem.package} and give it with --data"
        remedy = made_by if problem.package else ""
        for key in sorted(every - set(problem.options)):
            if getattr(self, key) != usual[key]:
                raise UserError(f"{flag(key)} does nothing with --problem {self.problem}{remedy}.")

    @cached_property
    def about(self) -> Problem:
        """The problem; that of own data is read from the file."""
        if self.problem != OWN:
            return PROBLEMS[self.problem]
        return own_problem(opened(Path(str(self.data)), self), self.frames_in)


def opened(path: Path, told: Told) -> "Fields":
    """A file of samples; one that was opened last is not read again."""
    from data.fields.reader import open_fields

    if not path.is_file():  # a store of many files, or a mistake
        return open_fields(path, told=told)
    plain = Told(**{entry.name: getattr(told, entry.name) for entry in fields(Told)})
    known = path.stat()
    return _opened(path.resolve(), known.st_mtime_ns, known.st_size, plain)


@lru_cache(maxsize=1)
def _opened(path: Path, changed: int, size: int, told: Told) -> "Fields":
    from data.fields.reader import open_fields

    return open_fields(path, told=told)


@dataclass(frozen=True)
class TrainConfig(DataOptions, ExperimentConfig):
    """Options of `python -m pde.train`."""

    app: ClassVar[str] = "pde"
    package: ClassVar[str] = "pde"
    registry: ClassVar[Registry] = MODELS
    presets_by: ClassVar[str] = "problem"
    unset_by: ClassVar[Mapping[str, str]] = {"resolution": "data"}  # a file has a resolution of its own
    placement: ClassVar[frozenset[str]] = ExperimentConfig.placement | {"data", "memory_gb"}
    group: ClassVar[str] = "training"

    model: str = "mno"
    """What to train."""
    recipe: Recipe = "markov"
    """markov: one frame in, one step, noise, residual. fno: 10 frames in, loss through the whole rollout
    (navier-stokes). map: from the input to its answer; always taken for darcy."""
    minutes: float | None = None
    """Train for about this long: chooses epochs and their steps from the time that a few steps take."""
    noise: float = 0.01
    """With --recipe markov: standard deviation of the noise on the normalised input."""
    symmetries: bool = False
    """Train on each sample under a random symmetry of the problem: mirror images, turns."""
    first_frame: int | None = None
    """With --recipe markov: the first frame to train on, from 0; the one that forecasts start from when not given."""

    def __post_init__(self) -> None:
        DataOptions.__post_init__(self)
        ExperimentConfig.__post_init__(self)
        problem = self.about
        if problem.static and self.recipe == "markov":
            settle(self, recipe="map")
        if (self.recipe == "map") != problem.static:
            raise UserError(
                f"--recipe {self.recipe} does not suit --problem {self.problem}, "
                + ("where an input has one answer." if problem.static else "whose frames follow each other.")
            )
        if self.recipe == "fno" and problem.frames_in == 1:
            raise UserError(f"--recipe fno takes several frames in; {self.problem} starts from its first.")
        if self.recipe != "markov" and self.first_frame is not None:
            raise UserError(f"--first-frame does nothing with --recipe {self.recipe}; leave it out.")
        above(self, 0, "minutes")
        at_least(self, 0, "noise", "first_frame")
        if self.symmetries and not problem.symmetries:
            raise UserError(f"--symmetries: none are known for {self.problem}; leave the option out.")
        if not self.every_model:
            chosen = {option.name: self.options.get(option.name) for option in CARRIED}
            settle(self, options=designed(self.options, problem.design))
            check_geometry(self.model, self.options, problem.geometry)
            if self.options.get("transport") and problem.static:
                raise UserError(f"--transport: nothing is carried in {self.problem}; leave the option out.")
            for key, value in chosen.items():
                if value not in (None, problem.design.get(key)) and not self.options["transport"]:
                    raise UserError(
                        f"{flag(key)} {value} is for fields that are carried: add --transport true."
                    )

    @classmethod
    def presumed(cls, asked: Callable[[str], str | None]) -> dict[str, Any]:
        """What the file says of itself, where only `--data` was given: its problem, and the value of its case."""
        data = asked("data")
        if data is None or asked("problem") not in (None, OWN):
            return {}
        told = {key: value for key in OWN_OPTIONS if (value := asked(key)) is not None}
        if told or asked("problem") == OWN:
            return {"problem": OWN}
        found = opened(Path(data), Told())
        known = PROBLEMS.get(found.problem)
        if known is None:
            return {"problem": OWN}
        case = known.case
        told_case = {} if case is None or asked(case) else {case: found.parameters.get(case)}
        return {"problem": known.name} | {key: value for key, value in told_case.items() if value is not None}

    @property
    def in_frames(self) -> int:
        """Frames that the model sees."""
        return self.about.frames_in if self.recipe == "fno" else 1

    def label(self) -> str:
        problem = self.about
        case = f"-{problem.case_name(getattr(self, problem.case))}" if problem.case else ""
        return f"{self.problem}{case}-{super().label()}"


@dataclass(frozen=True)
class EvalConfig:
    """Options of `python -m pde.eval`."""

    problem: ProblemName | None = None
    """Evaluate the runs of this problem only."""
    weights: list[Path] = field(default_factory=list)
    """Weights files to evaluate on --data; without any, all finished runs, each on its own data."""
    data: Path | None = None
    """A file of samples to evaluate on; needed with --weights, and replaces the runs' own data otherwise."""
    num_test: int | None = None
    """Samples to test on, the last of the file; when not given, as in training, and all of a file that is another."""
    batch_size: int = 20
    """Samples that are forecast together."""
    average_symmetries: int = 1
    """Average every step over this many images under symmetries of the problem, for as many times the work."""
    samples: list[int] = field(default_factory=lambda: [0])
    """Test samples to draw."""
    out: Path | None = None
    """Folder for tables and figures; runs/pde/results by default, with one folder per problem in it."""
    figures: bool = True
    """Draw the figures and the animation too; --figures false leaves them out."""
    threads: int | None = None
    """CPU threads."""

    def __post_init__(self) -> None:
        if self.weights and self.data is None:
            raise UserError("--weights needs --data, the file of samples to evaluate on.")
        if self.weights and self.problem is not None:
            raise UserError("--problem chooses among the finished runs; with --weights, leave it out.")
        at_least(self, 1, "batch_size", "num_test", "threads", "average_symmetries")


@dataclass(frozen=True)
class ExportConfig(ExportOptions):
    """Options of `python -m pde.export`."""

    steps: int = 1
    """Frames that the exported model forecasts, each from those before it."""

    def __post_init__(self) -> None:
        at_least(self, 1, "steps")


@dataclass(frozen=True)
class TableConfig(TrainConfig):
    """Options of `python -m pde.table`: those of training, given to every run, and which runs."""

    every_model: ClassVar[bool] = True

    minutes: float | None = 10.0
    """Time of each training."""
    models: list[str] = field(default_factory=list)
    """Rows to train, such as mno, fno or, between walls, mno-dst; all of the problem's when not given."""
    nus: list[float] = field(default_factory=lambda: list(NUS))
    """navier-stokes: viscosities to train them at."""
    seeds: int = 1
    """Seeds of each of --seeded-models, from 0; the others have one."""
    seeded_models: list[str] = field(default_factory=list)
    """Rows that are trained with all seeds; all when not given."""
    ablation: bool = False
    """Train, instead of --models, the first of them (mno when none is given) whole and without each of its parts:
    symmetries, coordinates, transport, its filter, shear, cells, learned transforms."""
    prefix: str = "table"
    """Beginning of the runs' names; finished runs of the same name are not repeated."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "seeds")
        if not self.nus:
            raise UserError("--nus needs at least one entry.")
        if self.about.case is None and self.nus != NUS:
            raise UserError(f"--nus does nothing with --problem {self.problem}; leave it out.")
        if self.nu != DataOptions.nu and self.nus != [self.nu]:
            raise UserError(f"a table takes --nus, not --nu: add --nus {self.nu:g}.")
        known = list(comparison(self.about.geometry, self.about.static))
        for key in ("models", "seeded_models"):
            for name in getattr(self, key):
                if name not in known:
                    raise UserError(
                        f"{flag(key)}: the table of {self.problem} has {', '.join(known)}; not {name}."
                    )
        settle(self, models=self.models or known, seeded_models=self.seeded_models or known)
