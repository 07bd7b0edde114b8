"""The models of the demonstration: each entered here once."""

from typing import TYPE_CHECKING, Any

from lab.registry import Entry, Option, Registry

if TYPE_CHECKING:
    from torch import nn

MODELS = Registry(
    "demo",
    Entry(
        "monarch",
        "a Monarch matrix, with far fewer parameters",
        "lab.demo.models.monarch:MonarchMap",
        options=(
            Option("blocks", int, None, "Blocks of each factor; about the root of --size.", at_least=1),
        ),
        title="Monarch",
    ),
    Entry("dense", "a dense matrix", "lab.demo.models.dense:DenseMap"),
)


def build(name: str, size: int, **options: Any) -> "nn.Module":
    """The model called `name` for vectors of length `size`."""
    return MODELS[name].load()(size, **MODELS.settled(name, options))
