"""The linear layers of a model, and the reasons to leave one as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.lazy import LazyModuleMixin

from ..linear_operator import LinearOperator
from .kinds import Kind, MonarchLayer, kind_of

Select = Callable[[str, nn.Module], bool] | str | type[nn.Module] | tuple[type[nn.Module], ...]

ADAPTER = re.compile(r"(^|_)(lora|adapters?)(_|$)", re.IGNORECASE)
HEADS = {
    *("lm_head", "head", "heads", "classifier", "classification_head", "score", "qa_outputs", "logits"),
    *("embed_out", "output_projection", "lm_logits", "prediction_head", "seq_relationship"),
}
REAL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
QUANTISERS = re.compile(r"bitsandbytes|torchao|quanto|gptq|awq|hqq|eetq|aqlm|torch\.ao\.nn|\.quantized\.")


@dataclass(frozen=True)
class Candidate:
    """A linear layer by name; `impossible` says why it cannot be replaced, `protected` why only by name."""

    name: str
    layer: nn.Module
    kind: Kind | None
    impossible: str = ""
    protected: str = ""
    protected_part: str = ""
    """The part of the name that a pattern must hit for the layer to count as named."""

    @property
    def size(self) -> str:
        if isinstance(self.layer, nn.MultiheadAttention) and self.kind is None:
            return f"{self.layer.embed_dim} -> {self.layer.embed_dim}"
        if self.kind is None or isinstance(self.layer, LazyModuleMixin):
            sizes = (getattr(self.layer, name, "?") for name in ("in_features", "out_features"))
            return " -> ".join(map(str, sizes))
        shapes = [tuple(weight.shape) for weight in self.kind.weights(self.layer)]
        return ", ".join(
            f"{' x '.join(map(str, [*shape[:-2], '']))}{shape[-1]} -> {shape[-2]}"
            for shape in dict.fromkeys(shapes)
        )


def candidates(model: nn.Module) -> list[Candidate]:
    """Every linear layer of the model, in its order, recognised or not."""
    names = dict(model.named_modules())
    head = _output_head(model)
    found: list[Candidate] = []
    inside: set[nn.Module] = set()
    for name, layer in names.items():
        if layer in inside:
            continue
        if isinstance(layer, (MonarchLayer, LinearOperator)) or type(layer) is nn.MultiheadAttention:
            inside.update(layer.modules())
        kind = kind_of(layer)
        if kind is None and not _looks_linear(layer):
            continue
        parents = {parent: names[parent] for parent in _parents(name)}
        impossible = _impossible(layer, kind)
        reason, part = ("", "") if impossible else _protection(name, layer, parents, layer is head)
        found.append(Candidate(name, layer, kind, impossible, reason, part))
    return found


def chosen(model: nn.Module, found: list[Candidate], select: Select | None) -> dict[str, str]:
    """For each candidate the reason to leave it, empty if it is chosen. A pattern that hits none is an error."""
    words = select if isinstance(select, tuple) else (select,)
    if isinstance(select, nn.Module) or not all(
        isinstance(word, type)
        or (word is select and (word is None or isinstance(word, str) or callable(word)))
        for word in words
    ):
        raise TypeError(
            "select is a regular expression, a module type, a tuple of module types or a function (name, layer) -> "
            f"bool; got {select!r}."
        )
    names = dict(model.named_modules())
    matching = [c for c in found if _matches(select, names, c)]
    if not matching and found and select is not None and (isinstance(select, (str, type, tuple))):
        raise ValueError(_no_match(select, [c.name for c in found]))
    reasons: dict[str, str] = {}
    for candidate in found:
        if candidate not in matching:
            reasons[candidate.name] = "not selected"
        elif candidate.impossible:
            reasons[candidate.name] = candidate.impossible
        elif candidate.protected and not _is_named(select, candidate):
            reasons[candidate.name] = f"{candidate.protected}, and select does not name it"
        else:
            reasons[candidate.name] = ""
    return reasons


def _looks_linear(layer: nn.Module) -> bool:
    if isinstance(layer, (MonarchLayer, LinearOperator, nn.Bilinear)):
        return False
    if type(layer) is nn.MultiheadAttention or (
        hasattr(layer, "in_features") and hasattr(layer, "out_features")
    ):
        return not _wraps_a_linear(layer)
    stacks = [p for p in layer._parameters.values() if p is not None and p.dim() == 3 and p.shape[0] > 1]
    return bool(stacks) and not isinstance(layer, _ConvNd)


def _wraps_a_linear(layer: nn.Module) -> bool:
    """PEFT's layers carry the sizes of the layer inside them, which is listed by itself."""
    return _is_peft(layer) and "base_layer" in layer._modules


def _is_peft(layer: nn.Module) -> bool:
    return any(base.__name__ == "BaseTunerLayer" for base in type(layer).__mro__)


def _impossible(layer: nn.Module, kind: Kind | None) -> str:
    where = f"{type(layer).__module__}.{type(layer).__name__}"
    if QUANTISERS.search(where):
        return "quantised; dequantise the model first"
    if kind is None:
        if isinstance(layer, nn.MultiheadAttention):
            return "an attention with keys of its own (add_bias_kv or add_zero_attn)"
        if any(p is not None and p.dim() == 3 for p in layer._parameters.values()):
            return "a stack of matrices that its module uses in a way unknown here"
        return f"{type(layer).__name__} is no known kind of linear layer"
    if isinstance(layer, LazyModuleMixin):
        return "it has no weight yet; run the model once first"
    if isinstance(layer, nn.Linear) and type(layer) is not nn.Linear and not _is_computed(layer):
        return f"{type(layer).__name__}, a subclass of nn.Linear, may use its weight in another way"
    for weight in kind.weights(layer):
        if weight.dtype.is_complex:
            return "its weight is complex; use Monarch.from_dense"
        if weight.dtype not in REAL or type(weight.detach()) is not Tensor:
            return "quantised; dequantise the model first"
    return ""


def _protection(
    name: str, layer: nn.Module, parents: dict[str, nn.Module], is_output: bool
) -> tuple[str, str]:
    """Why a layer is only replaced when named, and the part of its name that counts."""
    last = name.rpartition(".")[2]
    at = 0
    for part in name.split("."):
        if ADAPTER.search(part):
            return "an adapter", name[at:]
        at += len(part) + 1
    for parent, module in parents.items():
        if _is_peft(module):
            rest = name.removeprefix(f"{parent}.")
            if rest == "base_layer":
                return (
                    "PEFT would merge adapters into its weight; convert first, then add adapters",
                    "base_layer",
                )
            return "an adapter", rest
    if is_output or last in HEADS:
        return "an output head", last
    siblings = next(reversed(parents.values()))._modules if parents else {}
    if last == "router" or (last == "gate" and "experts" in siblings):
        return "a router of experts", last
    if _is_computed(layer):
        return "pruned or parametrised: its weight is computed from other parameters", last
    return "", ""


def _is_computed(layer: nn.Module) -> bool:
    """Whether the weight comes from a pruning mask, a weight norm or a parametrisation."""
    return isinstance(layer, nn.Linear) and layer._parameters.get("weight") is None


def _output_head(model: nn.Module) -> nn.Module | None:
    """The layer in front of the vocabulary, which models of transformers name."""
    ask = getattr(model, "get_output_embeddings", None)
    try:
        return ask() if callable(ask) else None
    except (AttributeError, NotImplementedError):
        return None


def _parents(name: str) -> Iterator[str]:
    parts = name.split(".") if name else []
    for depth in range(len(parts)):
        yield ".".join(parts[:depth])


def _matches(select: Select | None, names: dict[str, nn.Module], candidate: Candidate) -> bool:
    if select is None:
        return True
    if isinstance(select, str):
        try:
            return re.search(select, candidate.name) is not None
        except re.error as error:
            raise ValueError(f"select={select!r} is no regular expression: {error}.") from error
    if isinstance(select, (type, tuple)):
        around = (names[parent] for parent in _parents(candidate.name))
        return any(isinstance(module, select) for module in (*around, candidate.layer))
    return select(candidate.name, candidate.layer)


def _is_named(select: Select | None, candidate: Candidate) -> bool:
    """A predicate names what it accepts; a pattern, what it would not hit without the protected part of the name."""
    if select is None or isinstance(select, (type, tuple)):
        return False
    if isinstance(select, str):
        stripped = candidate.name.removesuffix(candidate.protected_part)
        return re.search(select, stripped) is None
    return True


def _no_match(select: Select, names: list[str]) -> str:
    count = (
        f"the {len(names)} linear layers of the model"
        if len(names) > 1
        else f"the one linear layer, {names[0]}"
    )
    if not isinstance(select, str):
        kinds = select if isinstance(select, tuple) else (select,)
        inside = " or ".join(getattr(kind, "__name__", repr(kind)) for kind in kinds)
        return f"none of {count} lies inside {inside}."
    parts = dict.fromkeys(part for name in names for part in (*name.split("."), name) if not part.isdigit())
    near = get_close_matches(select, parts, n=1, cutoff=0.6)
    hint = f"Did you mean {near[0]!r}?" if near else f"Their names are {', '.join(names[:6])}, ..."
    return f"select={select!r} matches none of {count}. {hint}"
