"""Options of the MRI commands."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from lab.config import ExperimentConfig, Schedule
from lab.errors import UserError

ModelName = Literal["sense", "msense", "unet", "dc-sense", "cg-sense", "l1-wavelet"]
MODELS: tuple[str, ...] = get_args(ModelName)
LEARNED = ("msense", "unet")
"""Methods that gradients train. Of the others, sense has nothing to choose and the rest one number."""

Loss = Literal["l1", "squared", "mixed", "magnitude", "quality"]
Recipe = Literal["tuned", "paper"]

RECIPES: dict[str, dict[str, Any]] = {
    "paper": {
        "loss": "l1",
        "lr": 1e-3,
        "weight_decay": 1e-4,
        "schedule": "constant",
        "decay_towards": "zero",
    },
    "tuned": {
        "loss": "quality",
        "lr": 3e-4,
        "weight_decay": 1e-2,
        "schedule": "one-cycle",
        "decay_towards": "start",
    },
}
"""What each recipe says about the options that were not given."""


@dataclass
class TrainConfig(ExperimentConfig):
    """Options of `python -m mri.train`."""

    app: ClassVar[str] = "mri"
    placement: ClassVar[frozenset[str]] = ExperimentConfig.placement | {"data"}

    model: ModelName = "msense"
    """The method; `python -m mri.models` describes them."""
    acc: float = 2.0
    """Acceleration: points of the acquired grid per point sampled."""
    n_train: int | None = None
    """Training scans, nested subsets by the published rule; all of them when not given."""
    mask: Literal["poisson", "random", "uniform", "lines"] = "poisson"
    """How k-space is sampled: points in (ky, kz), or whole lines."""
    echo: Literal["both", "1", "2"] = "both"
    """Echoes to train on; evaluation always scores every echo."""

    data: str | None = None
    """Folder of SKM-TEA or fastMRI data; without it SKM_TEA_ROOT, and without that synthetic knees, made on
    the spot."""
    skip_bad: bool = False
    """Leave out files that cannot be read, and say so, instead of stopping."""
    knees: int = 12
    """How many synthetic knees, where they are used."""
    knee_shape: tuple[int, int, int] = (32, 96, 40)
    """Matrix of the synthetic knees along (x, y, z), zero-padding included."""
    masks: int = 200
    """Masks in the pool that training draws from."""
    slices: int | None = None
    """Training slices of each scan, evenly spaced, each with all its echoes; all when not given."""
    samples: int | None = None
    """One budget whatever the number of scans: slices seen in the whole run, from which --epochs follows."""
    val_slices: int = 32
    """Validation slices, evenly spaced over all validation scans, each with all its echoes."""

    recipe: Recipe = "tuned"
    """What the options below are when not given. paper: complex L1, Adam 1e-3, decay towards zero.
    tuned: minus pSNR and SSIM, one-cycle, decay towards the start."""
    loss: Loss | None = None
    """l1: |error|, squared: |error|^2, mixed: their sum, all of the complex image; magnitude: squared error of the
    magnitude; quality: its logarithm and --similarity (1 - SSIM) of each slice, minus the scores of the tables.
    (default: the recipe's)"""
    similarity: float = 10.0
    """What SSIM counts in --loss quality: with 10, 0.01 of it is worth 0.43 dB; 0 leaves pSNR alone."""
    lr: float | None = None  # type: ignore[assignment]
    """Peak learning rate. (default: the recipe's)"""
    weight_decay: float | None = None  # type: ignore[assignment]
    """Decay of the weights per step, relative to the learning rate. (default: the recipe's)"""
    schedule: Schedule | None = None  # type: ignore[assignment]
    """How the learning rate changes over the run. (default: the recipe's)"""
    decay_towards: Literal["start", "zero"] | None = None
    """Where weight decay pulls mSENSE: to the transform it started from, or to zero. (default: the recipe's)"""
    shift: float = 0.0
    """Random shifts of the field of view in training, up to this share of it in either direction (at most 0.5)."""
    turn: bool = False
    """Turn the phase of each training slice by a random angle. Nothing changes for linear methods; a network learns
    that the phase of a scan is arbitrary."""

    start: Literal["idft", "density"] = "idft"
    """mSENSE starts at the inverse DFT, or at the density-compensated one."""
    form: Literal["separable", "grid"] = "separable"
    """mSENSE's Monarch: one per axis (the paper), or the grid form, a block per row and per column."""
    per_echo: bool = False
    """mSENSE has an operator of its own for each echo."""
    steps: int = 1
    """mSENSE: unrolled steps x + M(y - A x) that share one Monarch; 1 is the paper's M y."""
    consistency: bool = False
    """mSENSE ends with one step of data consistency, x + A^H(y - A x)."""
    channels: int = 32
    """U-Net: feature maps of its first level."""

    def __post_init__(self) -> None:
        for key, value in RECIPES[self.recipe].items():
            if getattr(self, key) is None:
                setattr(self, key, value)
        super().__post_init__()
        for key in ("masks", "val_slices", "steps", "channels", "knees"):
            if getattr(self, key) < 1:
                raise UserError(f"--{key.replace('_', '-')} must be at least 1, not {getattr(self, key)}.")
        for key in ("n_train", "slices", "samples"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise UserError(
                    f"--{key.replace('_', '-')} must be at least 1, not {value}; leave it out for all."
                )
        if not self.similarity >= 0:
            raise UserError(f"--similarity must be at least 0, not {self.similarity}.")
        if not 0 <= self.shift <= 0.5:
            raise UserError(f"--shift is a share of the field of view from 0 to 0.5, not {self.shift}.")

    @property
    def echoes(self) -> list[int] | None:
        """Indices of the echoes to train on; None for all."""
        return None if self.echo == "both" else [int(self.echo) - 1]

    def label(self) -> str:
        scans = "all" if self.n_train is None else str(self.n_train)
        return f"{method_label(vars(self)).replace(' ', '-')}-acc{self.acc:g}-n{scans}-{super().label()}"


_VARIANTS = {
    "msense": (
        "recipe", "loss", "similarity", "lr", "schedule", "weight_decay", "decay_towards", "shift", "echo",
        "start", "form", "per_echo", "steps", "consistency",
    ),
    "unet": ("recipe", "loss", "similarity", "lr", "schedule", "weight_decay", "shift", "turn", "echo", "channels"),
}  # fmt: skip


def method_label(options: dict[str, Any], usual: dict[str, Any] | None = None) -> str:
    """The name of a method in tables: the model, and those options that differ from the usual ones.

    What is usual are the defaults, the recipe's values and, where given, `usual` (a preset).

    >>> method_label({"model": "msense", "steps": 3, "per_echo": True, "shift": 0.05}, {"shift": 0.05})
    'msense per-echo steps=3'
    """
    model = str(options["model"])
    defaults = {name: each.default for name, each in TrainConfig.__dataclass_fields__.items()}
    defaults |= RECIPES[str(options.get("recipe", "tuned"))] | (usual or {})
    words = [model]
    for key in _VARIANTS.get(model, ()):
        value, name = options.get(key, defaults[key]), key.replace("_", "-")
        if value == defaults[key]:
            continue
        if value is True:
            words.append(name)
        elif key in ("recipe", "loss", "start", "form", "schedule"):
            words.append(f"{value}")
        else:
            words.append(f"{name}={value:g}" if isinstance(value, float | int) else f"{name}={value}")
    return " ".join(words)


@dataclass
class TableConfig(TrainConfig):
    """Options of `python -m mri.table`: those of training, given to every run, and which runs."""

    accs: list[float] = field(default_factory=lambda: [2.0, 3.0, 4.0])
    """Accelerations of the first table, with --n-train scans."""
    few_shot: list[int] = field(default_factory=lambda: [1, 2, 3, 5])
    """Numbers of training scans of the second table, at the first of --accs."""
    methods: list[ModelName] = field(default_factory=lambda: list(MODELS))  # type: ignore[arg-type]
    """Methods to compare; the few-shot table has those of them that learn, the U-Net stands in it alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.accs or not self.methods:
            raise UserError("--accs and --methods need at least one entry each.")


@dataclass
class EvalConfig:
    """Options of `python -m mri.eval`."""

    runs: str | None = None
    """Folder that holds the finished runs (default: runs/mri)."""
    only: str | None = None
    """Take only runs whose folder name contains this."""
    split: Literal["test", "val"] = "test"
    """Scans to score; val is for choosing between options."""
    out: str | None = None
    """Folder for tables, figures and volumes (default: results/ beside the runs)."""
    data: str | None = None
    """Where the data are now, if they have moved since training."""
    figures: bool = True
    """Draw reconstructions and what mSENSE learned; --figures false leaves them out."""
    export: Literal["none", "nifti"] = "none"
    """Write the reconstructed volumes of the test scans too."""
    threads: int | None = None
    """CPU threads (default: all)."""


@dataclass
class ReconstructConfig:
    """Options of `python -m mri.reconstruct`."""

    weights: str = ""
    """Weights of a finished run, runs/mri/<name>/weights.safetensors."""
    input: str = ""
    """A scan, in the layout of SKM-TEA or fastMRI."""
    out: str = "reconstruction.nii.gz"
    """The volume to write, .nii or .nii.gz: magnitude, one frame an echo."""
    acc: float | None = None
    """Acceleration to simulate (default: the one of the training). 1: the scan is undersampled already, and
    what is not zero was sampled."""
    threads: int | None = None
    """CPU threads (default: all)."""

    def __post_init__(self) -> None:
        for key in ("weights", "input"):
            if not getattr(self, key):
                raise UserError(f"--{key} is missing; python -m mri.reconstruct --help shows how to give it.")


@dataclass
class ModelsConfig:
    """Options of `python -m mri.models`."""

    plane: tuple[int, int] = (512, 160)
    """Size (ky, kz) of a slice."""
    coils: int = 8
    """Receive coils."""
