"""Options of the commands; nothing here needs torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

from lab.checks import above, at_least
from lab.config import ExperimentConfig, as_plain_dict
from lab.errors import UserError
from lab.files import fingerprint
from lab.registry import Registry
from text.models import MODELS
from text.models.parts.sizes import check_blocks
from text.settings import SETTINGS, Setting

SettingName = Literal["dense", "monarch", "reverse", "pretrain", "finetune", "project", "adapter"]
VocabularyName = Literal["bytes", "bpe"]


@dataclass(frozen=True)
class DataOptions:
    """Which text, and how it is cut."""

    group: ClassVar[str] = "data"

    data: Path | None = None
    """A text file, or a folder of them; the source text of Python's standard library when not given."""
    vocabulary: VocabularyName = "bytes"
    """bytes: every byte is a token. bpe: byte pairs learned from the training text (needs the extra `bpe`)."""
    vocabulary_size: int = 4096
    """With --vocabulary bpe: number of tokens."""
    context: int = 128
    """Tokens per sequence."""
    num_val: int = 128
    """Sequences that choose the best weights, spread over the validation documents."""
    num_test: int = 512
    """Sequences to test on, spread over the test documents; training never reads them."""

    def __post_init__(self) -> None:
        at_least(self, 1, "num_val", "num_test")
        at_least(self, 8, "context")
        if not 257 <= self.vocabulary_size <= 65_536:
            raise UserError(f"--vocabulary-size must be 257 to 65536, not {self.vocabulary_size}.")


@dataclass(frozen=True)
class TrainConfig(DataOptions, ExperimentConfig):
    """Options of `python -m text.train`."""

    app: ClassVar[str] = "text"
    package: ClassVar[str] = "text"
    registry: ClassVar[Registry] = MODELS
    presets_by: ClassVar[str] = "model"
    aliases: ClassVar[Mapping[str, str]] = {"arch": "model"}

    model: str = "gpt"
    """What to train."""
    setting: SettingName = "dense"
    """dense, monarch: such matrices from beginning to end. reverse: Monarch, turned dense at --switch-at.
    pretrain: dense, on half of the documents. finetune, project, adapter: that model (trained first if need be)
    on the other half, dense, projected to Monarch, or frozen beside Monarch adapters that learn."""
    switch_at: float = 0.9
    """With --setting reverse: fraction of the steps after which the matrices turn dense."""
    minutes: float | None = None
    """Train for about this long, validations aside: chooses --epoch-steps from the time that a few steps take."""
    pretrain_epochs: int | None = None
    """With --setting finetune, project and adapter: epochs of the pretraining; --epochs when not given."""
    finetune_lr: float = 0.5
    """With --setting finetune and project: peak learning rate, relative to --lr. Adapters learn ten times as fast."""
    adapter_rank: int = 4
    """With --setting adapter: rank of the adapters' blocks; --blocks of them."""
    dropout: float = 0.0
    """Dropout of models that begin dense. Monarch models are smaller and trained without, as in the paper."""

    def __post_init__(self) -> None:
        DataOptions.__post_init__(self)
        ExperimentConfig.__post_init__(self)
        if not 0 <= self.switch_at <= 1:
            raise UserError(f"--switch-at is a fraction of the run, 0 to 1, not {self.switch_at}.")
        if not 0 <= self.dropout < 1:
            raise UserError(f"--dropout must be at least 0 and below 1, not {self.dropout}.")
        above(self, 0, "minutes", "pretrain_epochs", "finetune_lr")
        at_least(self, 1, "adapter_rank")
        if (self.way.monarch or self.way.adapter) and self.options["blocks"] is None:
            raise UserError(f"--setting {self.setting} needs --blocks, the blocks of its Monarch matrices.")
        if self.way.monarch or self.way.adapter:
            check_blocks(self.options["size"], self.options["blocks"])

    @property
    def way(self) -> Setting:
        """What the setting means."""
        return SETTINGS[self.setting]

    @property
    def peak_lr(self) -> float:
        """The highest learning rate of this run."""
        return self.lr * self.way.rate * (self.finetune_lr if self.way.pretrained else 1.0)

    @property
    def adapter(self) -> dict[str, int] | None:
        """Blocks and rank of the adapters, where the setting has any."""
        return {"blocks": self.options["blocks"], "rank": self.adapter_rank} if self.way.adapter else None

    def pretraining(self) -> "TrainConfig":
        """The run that a pretrained setting begins with, under a name that only its own options decide."""
        usual = TrainConfig()
        own = ("minutes", "pretrain_epochs", "finetune_lr", "adapter_rank", "switch_at")
        foreign = {key: getattr(usual, key) for key in own}
        epochs = self.pretrain_epochs or self.epochs
        # Steps that are repeated are those of the run that was asked for.
        first = replace(self, setting="pretrain", epochs=epochs, resume=True, steps_of=None, **foreign)
        # Only what is not at its default, so that an option that comes later leaves the name as it was.
        default = as_plain_dict(usual)
        told = {
            key: value
            for key, value in as_plain_dict(first).items()
            if key not in self.placement and value != default.get(key)
        }
        return replace(first, name=f"{first.label()}-{fingerprint(told)[:8]}")

    def label(self) -> str:
        return f"{self.model}-{self.setting}-seed{self.seed}"


@dataclass(frozen=True)
class EvalConfig:
    """Options of `python -m text.eval`."""

    out: Path | None = None
    """Folder for the tables and figures; runs/text/results by default."""


@dataclass(frozen=True)
class TableConfig(TrainConfig):
    """Options of `python -m text.table`: those of training, given to every run, and which runs."""

    settings: list[str] = field(default_factory=lambda: [name for name in SETTINGS if name != "pretrain"])
    """Settings to compare."""
    times: list[float] = field(default_factory=lambda: [0.7, 1.0])
    """Also train the Monarch settings from scratch for these fractions of the time that the dense run took."""
    seeds: int = 2
    """Seeds of each, from 0."""
    prefix: str = "table"
    """Beginning of the runs' names; finished runs of the same name are not repeated."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, 1, "seeds")
        if not self.settings:
            raise UserError("--settings needs at least one entry.")
        if not all(share > 0 for share in self.times):
            raise UserError(f"--times are fractions above 0, not {' '.join(map(str, self.times))}.")
