"""The ways to train a model that the application compares: each entered here once."""

from dataclasses import dataclass
from typing import Literal

Part = Literal["all", "first", "second"]
"""Training documents: all of them, or either half."""


@dataclass(frozen=True)
class Setting:
    """Which matrices a model begins with, where they come from, and what they are compared with."""

    summary: str
    monarch: bool = False
    """Whether it begins with Monarch matrices."""
    switches: bool = False
    """Whether they turn dense within the run."""
    adapter: bool = False
    """Whether the matrices stay as they are and Monarch adapters beside them learn."""
    pretrained: bool = False
    """Whether it begins with the weights of a dense model that was trained on the first half."""
    part: Part = "all"
    """What it is trained on."""
    rate: float = 1.0
    """Its learning rate, relative to that of others like it."""
    against: str | None = None
    """The setting that it is compared with."""


SETTINGS = {
    "dense": Setting("dense matrices from beginning to end"),
    "monarch": Setting("Monarch matrices from beginning to end", monarch=True, against="dense"),
    "reverse": Setting(
        "Monarch matrices, turned dense at --switch-at", monarch=True, switches=True, against="dense"
    ),
    "pretrain": Setting("dense, on the first half of the documents", part="first"),
    "finetune": Setting("pretrained, then trained dense on the second half", pretrained=True, part="second"),
    "project": Setting(
        "pretrained, projected to Monarch, then trained on the second half",
        monarch=True,
        pretrained=True,
        part="second",
        against="finetune",
    ),
    "adapter": Setting(
        "pretrained and frozen; Monarch adapters beside its matrices learn the second half",
        adapter=True,
        pretrained=True,
        part="second",
        rate=10.0,  # few parameters that start at zero; see docs/text.md
        against="finetune",
    ),
}
