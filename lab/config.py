"""The options that every experiment has, whatever it trains. Configs are frozen: they are read, never written."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from lab.checks import above, at_least, at_most, flag
from lab.errors import UserError
from lab.files import write_text
from lab.paths import plain_name
from lab.presets import Preset
from lab.registry import Registry

Schedule = Literal["constant", "cosine", "step", "one-cycle"]
C = TypeVar("C", bound="ExperimentConfig")


@dataclass(frozen=True)
class RunOptions:
    """Which run it is."""

    group: ClassVar[str] = "run"

    preset: Preset = "auto"
    """paper: the paper's protocol. laptop: minutes on 2 CPU cores. smoke: seconds, for trying things out. benchmark
    (pde, navier-stokes): the paper's data under the best recipe, for --minutes.
    auto: paper where an accelerator is present, laptop otherwise."""
    name: str | None = None
    """Name of the run's folder under runs/; made from the date and the options when not given."""
    resume: bool = False
    """Continue the run called --name from its last checkpoint; begin it if there is none."""
    steps_of: Path | None = None
    """manifest.json of a run with a budget of minutes: take the steps that it took, to repeat it exactly."""
    seed: int = 0
    """Seed of everything random: weights, order of the data, noise."""


@dataclass(frozen=True)
class ModelOptions:
    """What is trained. The options of each model are those of its entry in the application's registry."""

    group: ClassVar[str] = "model"

    model: str = ""
    """What to train."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the model; each is a flag of its own."""


@dataclass(frozen=True)
class TrainingOptions:
    """How it is trained."""

    group: ClassVar[str] = "training"

    epochs: int = 10
    """Epochs, each with a validation at its end: passes over the training data, unless --epoch-steps says otherwise."""
    epoch_steps: int | None = None
    """Optimiser steps per epoch; one pass over the training data when not given."""
    batch_size: int = 20
    """Samples per optimiser step, over all devices together."""
    lr: float = 1e-3
    """Peak learning rate."""
    weight_decay: float = 1e-4
    """Decay of the weights per step, relative to the learning rate (AdamW)."""
    schedule: Schedule = "cosine"
    """How the learning rate changes over the run."""
    warmup_steps: int = 0
    """Steps over which the learning rate rises from 0 to its peak, before the schedule; one-cycle has its own rise."""
    step_size: int = 100
    """With --schedule step: epochs after which the learning rate is halved."""
    precision: Literal["32", "bf16-mixed"] = "32"
    """Arithmetic of training: single precision, or bfloat16 in the matrix products (weights stay in single)."""
    grad_clip: float | None = None
    """Largest norm of the gradient; larger ones are scaled down to it."""


@dataclass(frozen=True)
class HardwareOptions:
    """Where it runs: nothing here changes what is computed."""

    group: ClassVar[str] = "hardware"

    accelerator: str = "auto"
    """cpu, gpu, mps, or auto (what is there)."""
    devices: int = 1
    """Processes per node: GPUs, or CPU processes."""
    num_nodes: int = 1
    """Machines in a distributed run."""
    num_workers: int = 0
    """Processes that load data; 0 loads in the training process."""
    threads: int | None = None
    """CPU threads per process; all cores shared out among the processes when not given."""
    checkpoint_minutes: float = 5.0
    """A checkpoint is written at the end of every epoch, and this often within a long one."""
    logger: Literal["csv", "tensorboard", "wandb"] = "csv"
    """A further log beside metrics.csv, which is always written."""


@dataclass(frozen=True)
class ExperimentConfig(HardwareOptions, TrainingOptions, ModelOptions, RunOptions):
    """Options of a training run. Applications derive from it and add their own."""

    app: ClassVar[str]
    """The application's name: its folder under runs/ and configs/."""
    package: ClassVar[str]
    """The application's package: `python -m <package>.train` trains."""
    registry: ClassVar[Registry]
    """The application's models."""
    aliases: ClassVar[Mapping[str, str]] = {}
    """Other names of options that published commands use: {alias: option}."""
    every_model: ClassVar[bool] = False
    """Whether the options are those of a whole table: options of models are then given to every model that has them."""
    group: ClassVar[str] = "training"
    """The heading in --help of the options that a class defines."""

    # Where and how a run was placed and called, not what it computes: may differ between a run and its continuation.
    # A preset is a source of values, and those are options of their own.
    placement: ClassVar[frozenset[str]] = frozenset({"preset", "name", "resume", "steps_of"}) | {
        entry.name for entry in fields(HardwareOptions)
    }

    def __post_init__(self) -> None:
        if not self.every_model:
            settle(self, options=self.registry.settled(self.model, self.options))
        for key, instead in (("model", "models"), ("name", "prefix"), ("seed", "seeds")):
            if self.every_model and getattr(self, key) != getattr(type(self), key):
                raise UserError(f"a table takes {flag(instead)}, not {flag(key)}.")
        for key in ("name", "prefix"):  # a table's runs begin with its prefix
            if getattr(self, key, None) is not None:
                plain_name(getattr(self, key), flag(key))
        counts = ("epochs", "epoch_steps", "batch_size", "devices", "num_nodes", "step_size", "threads")
        at_least(self, 1, *counts)
        at_least(self, 0, "weight_decay", "warmup_steps", "num_workers", "seed")
        at_most(self, 2**15, "threads")
        above(self, 0, "lr", "checkpoint_minutes")
        above(self, 0, "grad_clip", remedy="; leave it out for no clipping")
        if self.batch_size % (self.devices * self.num_nodes):
            raise UserError(
                f"--batch-size {self.batch_size} cannot be shared out evenly among "
                f"{self.devices * self.num_nodes} processes; take a multiple of that."
            )

    def label(self) -> str:
        """A few words that tell this run from its neighbours; applications add theirs."""
        return f"{self.model}-seed{self.seed}"


@dataclass(frozen=True)
class ExportOptions:
    """What an application's command `export` exports, and where to."""

    weights: Path | None = None
    """Weights of a finished run, NAME/weights.safetensors in the application's folder under runs/."""
    out: Path = Path("model.onnx")
    """The file to write: .onnx, or .pt2 for torch alone."""


def run_of_table(
    table: ExperimentConfig, config_class: type[C], model: str, options: Mapping[str, Any], **own: Any
) -> C:
    """The options of one run of a table: the table's, those of `model` among them, then `options` and `own`."""
    shared = {entry.name: getattr(table, entry.name) for entry in fields(config_class)}
    has = config_class.registry[model].defaults
    chosen = {key: value for key, value in table.options.items() if key in has}
    settled = {"model": model, "options": chosen | dict(options), "resume": True}
    return config_class(**{**shared, **settled, **own})


def settle(config: Any, **values: Any) -> None:
    """Fill in values that follow from others. For `__post_init__` only: afterwards a config never changes."""
    for key, value in values.items():
        object.__setattr__(config, key, value)


def as_plain_dict(config: Any) -> dict[str, Any]:
    """A config as plain values that YAML and JSON can hold, the model's options beside the others."""
    values: dict[str, Any] = {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        values |= dict(value) if entry.name == "options" else {entry.name: value}
    return {key: _plain(value) for key, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def write_yaml(config: Any, path: Path) -> None:
    """Write the resolved options so that `--config` reads them back."""
    import yaml

    write_text(path, yaml.safe_dump(as_plain_dict(config), sort_keys=False))


def defaults(config_class: type[ExperimentConfig], model: str) -> dict[str, Any]:
    """The value of every option that was not given, the model's own among them, as plain values."""
    own = {entry.name: _plain(_default(entry)) for entry in fields(config_class) if entry.name != "options"}
    named = config_class.registry[model].defaults if model in config_class.registry else {}
    return own | {"model": model} | {key: _plain(value) for key, value in named.items()}


def _default(entry: "Field[Any]") -> Any:
    if entry.default_factory is not MISSING:
        return entry.default_factory()
    return None if entry.default is MISSING else entry.default


def differences(config: ExperimentConfig, stored: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Options that change the result and differ from a stored config's: {name: (now, then)}.

    An option that did not exist then had, in effect, what is its default now.
    """
    now, usual = as_plain_dict(config), defaults(type(config), config.model)
    then = {key: stored.get(key, usual[key]) for key in now}
    keys = [key for key in now if key not in config.placement]
    return {key: (now[key], then[key]) for key in keys if now[key] != then[key]}
