"""Options of the commands; nothing here needs torch."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from data.fields.options import Precision
from lab.config import ExperimentConfig
from lab.errors import UserError
from pde.problems import DEFAULT, PROBLEMS, ProblemName

Model = Literal["mno", "lfno", "fno", "ffno", "sfno", "unet", "tfnet", "resnet"]
Recipe = Literal["markov", "fno", "map"]

# Which options belong to which model; the others leave it as it is.
MODEL_OPTIONS = {
    "mno": ("twin", "form", "start", "groups", "shared", "width", "modes", "depth", "expansion", "latent"),
    "lfno": ("start", "width", "modes", "depth", "latent"),
    "fno": ("start", "padding", "width", "modes", "depth", "batch_norm"),
    "ffno": ("width", "modes", "depth", "expansion"),
    "sfno": ("width", "modes", "depth"),
    "unet": (),
    "tfnet": (),
    "resnet": ("width",),
}


@dataclass
class DataConfig:
    """Where the samples come from and how they are shared out."""

    problem: ProblemName = DEFAULT
    """navier-stokes: a periodic flow. darcy, burgers-walls: between walls. shallow-water: on the sphere."""
    nu: float = 1e-3
    """navier-stokes: viscosity; 1e-3, 1e-4 and 1e-5 are the paper's."""
    data: Path | None = None
    """A file of samples, generated or (navier-stokes) public; made when not given."""
    num_train: int = 1000
    """Samples to train on, the first of the file."""
    num_val: int = 20
    """Samples that choose the best weights, those after the training ones."""
    num_test: int = 200
    """Samples to test on, the last; training never reads them."""
    resolution: int | None = None
    """Points per side to train and test on: every k-th point of a file that has more. Data of the other problems than
    navier-stokes is made with so many points."""
    precision: Precision = "float64"
    """navier-stokes, generated data: arithmetic of the solver."""
    max_grid: int = 256
    """navier-stokes, generated data: finest solver grid; a viscosity of 1e-3, 1e-4 or 1e-5 asks for 64, 128 or 256."""

    def check_data(self) -> None:
        """Refuse impossible numbers of samples."""
        for key in ("num_train", "num_val", "num_test"):
            if getattr(self, key) < 1:
                raise UserError(f"--{key.replace('_', '-')} must be at least 1, not {getattr(self, key)}.")
        if self.resolution is not None and self.resolution < 4:
            raise UserError(f"--resolution must be at least 4, not {self.resolution}.")
        usual = {entry.name: entry.default for entry in fields(DataConfig)}
        for key in ("nu", "precision", "max_grid"):
            if getattr(self, key) != usual[key] and key not in PROBLEMS[self.problem].options:
                raise UserError(
                    f"--{key.replace('_', '-')} does nothing with --problem {self.problem}; make other data with "
                    f"python -m {PROBLEMS[self.problem].package} and give it with --data."
                )


@dataclass
class TrainConfig(DataConfig, ExperimentConfig):
    """Options of `python -m pde.train`."""

    app: ClassVar[str] = "pde"
    presets_by: ClassVar[str] = "problem"

    model: Model = "mno"
    """What to train; `python -m pde.models` lists them."""
    recipe: Recipe = "markov"
    """markov: one frame in, one step, noise, residual. fno: 10 frames in, loss through the whole rollout
    (navier-stokes). map: from the input to its answer; the only one of darcy, and taken there."""
    minutes: float | None = None
    """Train for about this long: chooses --epochs and --epoch-steps from the time that a few steps take."""
    noise: float = 0.01
    """With --recipe markov: standard deviation of the noise on the normalised input."""
    symmetries: bool = False
    """Train on mirror images and turns, too: each sample under a random symmetry of the problem (not navier-stokes,
    whose forcing leaves few)."""

    width: int | None = None
    """Channels; by default 20, and 43 for resnet."""
    modes: int | None = None
    """Kept frequencies per axis; 12 by default."""
    depth: int | None = None
    """Spectral layers; 4 by default."""
    expansion: int | None = None
    """ffno: width of the feed-forward's hidden layer over that of the layer; 2 by default."""
    batch_norm: bool = False
    """fno: batch norm after each layer, as in the model whose parameters were published."""
    latent: int | None = None
    """mno, lfno: points per side of the coarse grid that the layers work on; by default half of the fine grid's."""
    twin: Literal["latent", "fno", "ffno"] | None = None
    """mno: the Fourier operator whose architecture it has; latent (lfno's) by default."""
    form: Literal["separable", "monarch", "grid"] | None = None
    """mno: one matrix for all rows and one for all columns (separable, the default), the same factorised as Monarch
    matrices (monarch), or a matrix for each row and each kept column (grid)."""
    start: Literal["dft", "dct", "dst", "sht", "random"] | None = None
    """mno: where the transforms begin; fno, lfno: where they stay. dft by default; sht only works on the sphere."""
    padding: float | None = None
    """fno: zeros beyond the walls or the pole, as a fraction of the grid."""
    groups: int | None = None
    """mno: groups of channels with transforms of their own; 1 by default."""
    shared: bool = False
    """mno: the same transforms in all layers."""
    transform_lr: float = 1.0
    """mno: learning rate of the transforms, relative to --lr."""
    transform_decay: float = 0.0
    """mno: decay of the transforms towards their start per step, relative to their learning rate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_data()
        self._settle_recipe()
        for key in ("width", "modes", "depth", "expansion", "groups", "latent"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise UserError(f"--{key} must be at least 1, not {value}.")
        if self.minutes is not None and not self.minutes > 0:
            raise UserError(f"--minutes must be above 0, not {self.minutes}.")
        for key in ("noise", "transform_lr", "transform_decay"):
            if getattr(self, key) < 0:
                raise UserError(f"--{key.replace('_', '-')} must not be negative; {getattr(self, key)} is.")
        if self.symmetries and not PROBLEMS[self.problem].symmetries:
            raise UserError(f"--symmetries: {self.problem} has no mirror images; leave the option out.")
        self._refuse_foreign_options()
        self._refuse_foreign_transforms()

    def _settle_recipe(self) -> None:
        problem = PROBLEMS[self.problem]
        if problem.static and self.recipe == "markov":
            self.recipe = "map"
        if (self.recipe == "map") != problem.static:
            raise UserError(
                f"--recipe {self.recipe} does not suit --problem {self.problem}, "
                + ("where an input has one answer." if problem.static else "whose frames follow each other.")
            )
        if self.recipe == "fno" and problem.frames_in == 1:
            raise UserError(f"--recipe fno takes several frames in; {self.problem} starts from its first.")

    def _refuse_foreign_transforms(self) -> None:
        geometry = PROBLEMS[self.problem].geometry
        if (self.start == "sht" or self.model == "sfno") and "sht" not in geometry.transforms:
            flag = "--model sfno" if self.model == "sfno" else "--start sht"
            raise UserError(
                f"{flag} only works on the sphere: it needs --problem shallow-water, not {self.problem}."
            )
        if self.model == "mno" and self.start == "sht" and self.form != "grid":
            raise UserError("--start sht has a matrix for each order: add --form grid.")
        if self.padding is not None and not (any(geometry.bounded) and 0 < self.padding < 1):
            raise UserError(
                f"--padding {self.padding:g}: {self.problem} is periodic in both directions, there is nothing to pad."
                if not any(geometry.bounded)
                else f"--padding must be between 0 and 1, not {self.padding:g}."
            )
        if self.model in ("fno", "lfno") and self.start == "random":
            raise UserError("--start random is for transforms that learn: take --model mno.")

    def _refuse_foreign_options(self) -> None:
        """An option that the model does not have would do nothing: say so."""
        every = {key for keys in MODEL_OPTIONS.values() for key in keys}
        for key in sorted(every - set(MODEL_OPTIONS[self.model])):
            if getattr(self, key) not in (None, False):
                raise UserError(
                    f"--{key.replace('_', '-')} does nothing with --model {self.model}; "
                    f"it belongs to {', '.join(name for name, keys in MODEL_OPTIONS.items() if key in keys)}."
                )
        if self.model == "mno" and self.expansion is not None and self.twin != "ffno":
            raise UserError("--expansion belongs to the feed-forward of F-FNO: add --twin ffno.")
        if self.form == "grid" and self.twin == "ffno":
            raise UserError(
                "--form grid is of the plane, and F-FNO goes axis by axis: leave --twin ffno out."
            )
        if self.latent is not None and self.twin in ("fno", "ffno"):
            raise UserError(f"--latent belongs to the twin latent: leave --twin {self.twin} out.")
        if self.form == "grid" and (self.groups or 1) > 1:
            raise UserError("--form grid has one group of channels: leave --groups out.")

    def model_options(self) -> dict[str, Any]:
        """What was chosen for the model; its defaults are left out."""
        chosen = {key: getattr(self, key) for key in MODEL_OPTIONS[self.model]}
        return {key: value for key, value in chosen.items() if value not in (None, False)}

    @property
    def is_latent(self) -> bool:
        """Whether the model's layers work on a coarse grid of their own."""
        return self.model == "lfno" or (self.model == "mno" and self.twin in (None, "latent"))

    @property
    def in_frames(self) -> int:
        """Frames that the model sees."""
        return PROBLEMS[self.problem].frames_in if self.recipe == "fno" else 1

    def label(self) -> str:
        if PROBLEMS[self.problem].case is None:
            return f"{self.problem}-{self.model}-{super().label()}"
        return f"{self.model}-nu{self.nu:.0e}-{self.recipe}-{super().label()}".replace("e-0", "e-")


@dataclass
class EvalConfig:
    """Options of `python -m pde.eval`."""

    problem: ProblemName | None = None
    """Only runs of this problem; without it all of them, each problem with a table of its own."""
    weights: list[Path] = field(default_factory=list)
    """Weights files to evaluate on --data; without any, all finished runs, each on its own data."""
    data: Path | None = None
    """A file of samples to evaluate on; needed with --weights, and replaces the runs' own data otherwise."""
    num_test: int | None = None
    """Samples to test on, the last of the file; as in training when not given."""
    batch_size: int = 20
    """Samples that are forecast together."""
    samples: list[int] = field(default_factory=lambda: [0])
    """Test samples to draw."""
    out: Path | None = None
    """Folder for tables and figures; by default runs/pde/results, and in it one for each of the newer problems."""
    figures: bool = True
    """Draw the figures and the animation too."""
    threads: int | None = None
    """CPU threads."""

    def __post_init__(self) -> None:
        if self.weights and self.data is None:
            raise UserError("--weights needs --data, the file of samples to evaluate on.")
        if self.batch_size < 1 or (self.num_test is not None and self.num_test < 1):
            raise UserError("--batch-size and --num-test must be at least 1.")


@dataclass
class TableConfig:
    """Options of `python -m pde.table`."""

    problem: ProblemName = DEFAULT
    """Whose table; each has its own set of models."""
    preset: Literal["paper", "laptop", "smoke"] = "laptop"
    """Whose options the runs have; see `python -m pde.train --help`."""
    models: list[str] = field(default_factory=list)
    """Models to train, all of the problem's when not given; navier-stokes: mno, lfno, fno, ffno, unet, tfnet,
    resnet; between walls: fno, fno-padded, mno-swap, and lfno-, mno- with each of dft, dst, dct; on the sphere:
    fno, fno-padded, sfno, mno-swap, and lfno-, mno- with each of dft, sht."""
    nus: list[float] = field(default_factory=lambda: [1e-3, 1e-4, 1e-5])
    """navier-stokes: viscosities to train them at."""
    seeds: int = 1
    """Seeds, from 0, for each of --seeded-models; the others have one."""
    seeded_models: list[str] = field(default_factory=list)
    """Models that are trained with all seeds; by default mno, lfno, fno and ffno, and all of the other problems'."""
    minutes: float = 10.0
    """Wall-clock time of each training."""
    recipe: Recipe = "markov"
    """Recipe of all runs."""
    resolution: int | None = None
    """Points per side, as in `python -m pde.train`."""
    num_train: int | None = None
    """Samples to train on; the preset's when not given."""
    prefix: str = "table"
    """Beginning of the runs' names; finished ones with the same name are not repeated."""
    threads: int | None = None
    """CPU threads."""

    def __post_init__(self) -> None:
        if not self.minutes > 0 or self.seeds < 1:
            raise UserError(f"--minutes and --seeds must be above 0, not {self.minutes} and {self.seeds}.")
        if not self.nus:
            raise UserError("--nus needs at least one entry.")
        known = list(PROBLEMS[self.problem].comparison())
        seeded = ["mno", "lfno", "fno", "ffno"] if PROBLEMS[self.problem].case is not None else known
        self.models, self.seeded_models = self.models or known, self.seeded_models or seeded
        for flag, names in (("--models", self.models), ("--seeded-models", self.seeded_models)):
            for name in names:
                if name not in known:
                    raise UserError(
                        f"{flag}: the table of {self.problem} has {', '.join(known)}; not {name}."
                    )
