"""Options of the MRI commands; nothing here needs torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from data.masks.spec import Kind
from lab.checks import above, at_least, flag
from lab.config import ExperimentConfig, Schedule, settle
from lab.errors import UserError
from lab.registry import Registry
from mri.models import MODELS

Loss = Literal["l1", "squared", "mixed", "magnitude", "quality"]
Recipe = Literal["tuned", "paper"]
Supervision = Literal["full", "self", "zero-shot"]
FEWEST_MASKS = 4
"""Masks that a density can be estimated from: of one alone, whatever it samples would seem always to be sampled."""

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
"""What each recipe says about the options that were not given, those of the model included."""


@dataclass(frozen=True)
class DataOptions:
    """Which scans, how they are sampled, and what of them is used."""

    group: ClassVar[str] = "data"

    data: Path | None = None
    """Folder of scans: SKM-TEA, fastMRI, or your own (ISMRMRD, BART, MATLAB, NumPy; docs/own-data-mri.md); without it
    SKM_TEA_ROOT, and without that synthetic knees, made on the spot."""
    acc: float = 2.0
    """Acceleration: points of the acquired grid per point sampled. Scans acquired undersampled have theirs."""
    mixed_acc: list[float] | None = None
    """Accelerations to train on together, each with its own pool of --masks masks, so that one method serves them
    all, as in --mixed-acc 2,4,8; validated at --acc, evaluated at each. Only --acc when not given."""
    num_train: int | None = None
    """Training scans (also --n-train), nested subsets by the published rule; all of them when not given."""
    mask: Kind = "poisson"
    """How k-space is sampled: points in (ky, kz), or whole lines."""
    masks: int = 200
    """Masks in the pool that training draws from."""
    echo: Literal["both", "1", "2"] = "both"
    """Echoes to train on; evaluation always scores every echo."""
    slices: int | None = None
    """Training slices of each scan, evenly spaced, each with all its echoes; all when not given."""
    val_slices: int = 32
    """Validation slices, evenly spaced over all validation scans, each with all its echoes."""
    plane: tuple[int, int] | None = None
    """Take only scans whose slices have this size, as in --plane [512,160], which the paper does; scans of every size
    when not given."""
    skip_bad: bool = False
    """Leave out files that cannot be read, and say so, instead of stopping."""
    knees: int = 12
    """How many synthetic knees, where they are used."""
    knee_shape: tuple[int, int, int] = (32, 96, 40)
    """Matrix of the synthetic knees along (x, y, z), zero-padding included."""

    @property
    def training_accs(self) -> list[float]:
        """Accelerations that training draws masks from."""
        return self.mixed_acc or [self.acc]

    @property
    def echoes(self) -> list[int] | None:
        """Indices of the echoes to train on; None for all."""
        return None if self.echo == "both" else [int(self.echo) - 1]


@dataclass(frozen=True)
class TrainConfig(DataOptions, ExperimentConfig):
    """Options of `python -m mri.train`."""

    app: ClassVar[str] = "mri"
    package: ClassVar[str] = "mri"
    registry: ClassVar[Registry] = MODELS
    aliases: ClassVar[Mapping[str, str]] = {"n_train": "num_train"}
    presets_by: ClassVar[str] = "model"
    placement: ClassVar[frozenset[str]] = ExperimentConfig.placement | {"data"}

    model: str = "msense"
    """The method."""
    supervision: Supervision = "full"
    """full: the loss compares images with fully sampled ones. self: no ground truth is used; each scan was acquired
    undersampled, or is sampled once, at --acc; some of its samples are held back at random in every step, and the loss
    is the misfit to all. zero-shot: the same on the scan that --scan names, with a third set of its samples to tell
    when to stop."""
    scan: str | None = None
    """With --supervision zero-shot: the scan to be reconstructed, of whatever split."""
    samples: int | None = None
    """One budget whatever the number of scans: slices seen in the whole run, with --joint-echoes each with all its
    echoes. The number of epochs follows from it, and --epochs does nothing."""
    minutes: float | None = None
    """Train for about this long: epochs and their steps follow from the time that a few steps take, instead of from
    --samples and --epochs."""
    recipe: Recipe = "tuned"
    """What --loss, --lr, --weight-decay, --schedule and --decay-towards are when not given. paper: complex L1,
    Adam 1e-3, decay towards zero. tuned: minus pSNR and SSIM, one-cycle, decay of mSENSE towards its start."""
    loss: Loss | None = None
    """l1: |error|, squared: |error|^2, mixed: their sum, all of the complex image; magnitude: squared error of the
    magnitude; quality: its logarithm and --similarity (1 - SSIM) of each slice, minus the scores of the tables.
    (default: the recipe's)"""
    similarity: float = 10.0
    """Weight of SSIM in --loss quality: with 10, 0.01 of SSIM is worth 0.43 dB; with 0 only pSNR counts."""
    lr: float | None = None  # type: ignore[assignment]
    """Peak learning rate. (default: the recipe's)"""
    weight_decay: float | None = None  # type: ignore[assignment]
    """Decay of the weights per step, relative to the learning rate. (default: the recipe's)"""
    schedule: Schedule | None = None  # type: ignore[assignment]
    """How the learning rate changes over the run. (default: the recipe's)"""
    shift: float = 0.0
    """Random shifts of the field of view in training, up to this share of it in either direction (at most 0.5)."""
    flip: bool = False
    """Mirror training batches along ky and kz at random."""
    noise: float = 0.0
    """Add noise to the samples of half the training slices, of up to this many times their median magnitude, so that
    the method learns noise levels that its scans do not have; the target stays."""
    turn: bool = False
    """Turn the phase of each training slice by a random angle. Linear methods do not change; a network learns that
    the phase of a scan is arbitrary."""

    def __post_init__(self) -> None:
        recipe, own = RECIPES[self.recipe], self.registry[self.model].defaults
        settle(self, **{key: value for key, value in recipe.items() if getattr(self, key, value) is None})
        given = {key: value for key, value in self.options.items() if value is not None}
        settle(self, options={key: recipe[key] for key in own if key in recipe} | given)
        super().__post_init__()
        at_least(self, 1, "masks", "val_slices", "knees")
        at_least(self, 1, "num_train", "slices", "samples", remedy="; leave it out for all")
        at_least(self, 0, "similarity", "noise")
        above(self, 0, "minutes")
        if not 0 <= self.shift <= 0.5:
            raise UserError(f"--shift is a share of the field of view from 0 to 0.5, not {self.shift}.")
        if self.supervision != "full":
            settle(self, mixed_acc=None)  # a preset may name several, but a scan is sampled once
            remedy = f" with --supervision {self.supervision}, which learns from them how densely k-space is sampled"
            at_least(self, FEWEST_MASKS, "masks", remedy=remedy)
        if self.echoes_together and self.echo != "both":
            raise UserError(
                f"--joint-echoes learns what echoes have in common; leave out --echo {self.echo}."
            )
        if (self.scan is not None) != (self.supervision == "zero-shot"):
            raise UserError(
                "--supervision zero-shot and --scan NAME go together: NAME is the scan to reconstruct."
            )

    @property
    def echoes_together(self) -> bool:
        """Whether the echoes of a slice are one sample."""
        return bool(self.options.get("joint_echoes"))

    def label(self) -> str:
        return f"acc{self.acc:g}-n{self.num_train or 'all'}-{super().label()}"


@dataclass(frozen=True)
class TableConfig(TrainConfig):
    """Options of `python -m mri.table`: those of training, given to every run that they concern, and which runs."""

    models: list[str] = field(default_factory=lambda: list(MODELS))
    """Methods to compare; the table of accelerations has all but --few-shot-only, the few-shot table those that
    gradients train."""
    accs: list[float] = field(default_factory=lambda: [2.0, 3.0, 4.0, 6.0, 8.0])
    """Accelerations of the first table, with --num-train scans."""
    mixed: list[str] = field(
        default_factory=lambda: [each.name for each in MODELS.values() if each.versatile]
    )
    """Methods that are trained once for all --accs (or --mixed-acc) together and scored at each; the others are trained
    at each acceleration."""
    few_shot: list[int] = field(default_factory=lambda: [1, 2, 3, 5])
    """Numbers of training scans of the second table, at the first of --accs."""
    few_shot_only: list[str] = field(default_factory=lambda: ["unet"])
    """Methods that stand in the few-shot table alone, as in the paper."""
    seeds: int = 1
    """Seeds of each run, from --seed."""
    prefix: str | None = None
    """Beginning of the runs' names; finished runs of the same name are not repeated. (default: table-PRESET)"""

    def __post_init__(self) -> None:
        chosen = dict(self.options)
        settle(self, options={})
        super().__post_init__()
        settle(self, options=chosen, prefix=self.prefix or f"table-{self.preset}")
        if self.model != TrainConfig.model:
            raise UserError("a table takes --models, not --model.")
        if not self.accs or not self.models or self.seeds < 1:
            raise UserError("--accs, --models and --seeds need at least one entry each.")
        for name in self.mixed:
            _ = self.registry[name]  # an unknown one is refused with a sentence
        for key in chosen:
            if not any(key in self.registry[model].defaults for model in self.models):
                raise UserError(f"{flag(key)} does nothing for --models {','.join(self.models)}.")


@dataclass(frozen=True)
class T2Options:
    """Maps of T2 from the two echoes of qDESS."""

    t2: bool = False
    """Map T2 from the two echoes of qDESS."""
    t1: float = 1200.0
    """T1 in milliseconds that maps of T2 assume: 1200 suits cartilage at 3 T."""
    tr: float | None = None
    """Repetition time in milliseconds, for maps of T2. (default: what the file says)"""
    te: float | None = None
    """Time of the first echo in milliseconds. (default: what the file says)"""
    flip: float | None = None
    """Flip angle in degrees. (default: what the file says)"""

    def __post_init__(self) -> None:
        above(self, 0, "t1", "tr", "te", "flip")
        if self.tr is not None and self.te is not None and self.te >= self.tr:
            raise UserError(f"--te must be below --tr, but {self.te:g} is not below {self.tr:g}.")

    def refuse_without_t2(self) -> None:
        """Refuse a timing or a T1 that a command would not use."""
        usual = {field.name: field.default for field in fields(T2Options)}
        given = [name for name in ("t1", "tr", "te", "flip") if getattr(self, name) != usual[name]]
        if given and not self.t2:
            raise UserError(f"{flag(given[0])} is for maps of T2; add --t2, or leave it out.")


@dataclass(frozen=True)
class EvalConfig(T2Options):
    """Options of `python -m mri.eval`."""

    runs: Path | None = None
    """Folder that holds the finished runs (default: runs/mri)."""
    only: str | None = None
    """Take only runs whose folder name contains this."""
    split: Literal["test", "val"] = "test"
    """Scans to score; val is for choosing between options."""
    against: list[str] = field(
        default_factory=lambda: [each.name for each in MODELS.values() if not each.learned]
    )
    """Methods that the others are compared with, scan by scan; those without training when not given."""
    out: Path | None = None
    """Folder for tables, figures and volumes (default: results/ beside the runs)."""
    data: Path | None = None
    """Where the data are now, if they have moved since training; or another data set to score the runs on."""
    plane: tuple[int, int] | None = None
    """Score only scans whose slices have this size, as in --plane [512,160]; scans of every size when not given."""
    cross: list[Path] | None = None
    """Data sets, as in --cross FOLDER,FOLDER: score every run on each, and print one table, trained on rows, scored on
    columns, instead of all others."""
    accs: list[float] | None = None
    """Accelerations to score at (default: those that each run was trained on)."""
    figures: bool = True
    """Draw reconstructions and learned transforms; --figures false leaves them out."""
    export: Literal["none", "nifti"] = "none"
    """Write the reconstructed volumes of the scored scans too."""
    uncertainty: bool = False
    """Calibrate the uncertainty of every method that gradients trained on the validation scans of its data, keep that
    beside its weights for mri.reconstruct --uncertainty, and report how often it holds on the scored scans."""
    threads: int | None = None
    """CPU threads (default: all)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_without_t2()
        at_least(self, 1, "threads")
        unused = [name for name in ("data", "t2", "uncertainty") if getattr(self, name)]
        unused += ["export"] if self.export != "none" else []
        if self.cross and unused:
            raise UserError(f"--cross writes one table and nothing else; leave out {flag(unused[0])}.")
        for name in self.against:
            _ = MODELS[name]  # an unknown one is refused with a sentence


@dataclass(frozen=True)
class ReconstructConfig(T2Options):
    """Options of `python -m mri.reconstruct`."""

    input: Path | None = None
    """A scan: SKM-TEA, fastMRI, ISMRMRD, BART, MATLAB or NumPy."""
    weights: Path | None = None
    """Weights of a finished run, runs/mri/NAME/weights.safetensors."""
    model: str | None = None
    """A method that needs no training, instead of --weights: sense, cg-sense, l1-wavelet, ..."""
    strength: float | None = None
    """Regularisation of --model; k-space is divided by the standard deviation of the image first, so that one strength
    suits every scan. (default: the method's)"""
    out: Path = Path("reconstruction.nii.gz")
    """What to write, by its ending: .nii or .nii.gz, .cfl (BART), .npy; without an ending, a folder of DICOM files."""
    part: Literal["magnitude", "phase", "complex"] | None = None
    """What of the image is written. (default: complex for .cfl, magnitude otherwise)"""
    acc: float | None = None
    """Acceleration to simulate on a fully sampled scan (default: that of the training; with --model none). 1: none is
    simulated. A scan that is undersampled already is recognised and taken as it is."""
    mask: Kind | None = None
    """How --acc samples with --model; weights know their own. (default: poisson)"""
    slices: str | None = None
    """Slices to reconstruct, as in 100:164: from the first up to the last, which is left out, counting from 0."""
    uncertainty: bool = False
    """Also write OUT-uncertainty.nii.gz: half the width of an interval that holds the magnitude in 90 % of the voxels.
    The weights must have been calibrated by mri.eval --uncertainty; eight more reconstructions."""
    threads: int | None = None
    """CPU threads (default: all)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_without_t2()
        at_least(self, 0, "strength")
        at_least(self, 1, "threads")


@dataclass(frozen=True)
class ModelsConfig:
    """Options of `python -m mri.models`."""

    plane: tuple[int, int] = (512, 160)
    """Size (ky, kz) of a slice."""
    coils: int = 8
    """Receive coils."""
