"""The language models: each entered here once."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from lab.registry import Entry, Option, Registry
from text.models.parts.sizes import check_blocks

if TYPE_CHECKING:
    from text.models.parts.language_model import LanguageModel

OPTIONS = (
    Option(
        "size",
        Literal["tiny", "mini", "small", "medium"],
        "mini",
        "small and medium have GPT-2's widths and depths; mini is two blocks of small, tiny for trying things out.",
    ),
    Option(
        "blocks",
        int | None,
        4,
        "Blocks of the Monarch matrices in attention and feed-forward; without effect on dense settings.",
        at_least=2,
    ),
)

MODELS = Registry(
    "text",
    Entry("gpt", "predicts the next token (GPT-2)", "text.models.gpt:GPT", OPTIONS, title="GPT"),
    Entry("bert", "predicts hidden tokens from both sides", "text.models.bert:BERT", OPTIONS, title="BERT"),
)


def build(
    name: str,
    vocabulary: int,
    context: int,
    *,
    dropout: float = 0.0,
    adapter: Mapping[str, int] | None = None,
    **options: Any,
) -> "LanguageModel":
    """The model called `name` for sequences of up to `context` tokens; `blocks=None` makes it dense.

    `adapter`, the blocks and the rank of Monarch adapters, puts them beside its matrices and freezes all else.
    """
    settled = MODELS.settled(name, options)
    if settled["blocks"] is not None:
        check_blocks(settled["size"], settled["blocks"])
    model: LanguageModel = MODELS[name].load()(vocabulary, context, dropout=dropout, **settled)
    if adapter is not None:
        from monarch_core import attach_adapter
        from text.models.parts.block import Block

        attach_adapter(model, select=Block, **adapter)
    return model
