"""The kinds of dense layers that can become Monarch: how each is recognised, measured and projected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

from torch import Tensor, nn

from ..attention import MonarchAttention, unsupported
from ..checks import module as checked_module
from ..experts import MonarchExperts, is_expert_stack, weight_names
from ..linear import MonarchLinear
from ..sizes import Blocks


class Kind(ABC):
    """One kind of dense layer."""

    @abstractmethod
    def fits(self, layer: nn.Module) -> bool: ...

    @abstractmethod
    def weights(self, layer: nn.Module) -> list[Tensor]:
        """Its matrices (out, in), or stacks (count, out, in)."""

    @abstractmethod
    def project(self, layer: nn.Module, blocks: Blocks, rank: int | None) -> nn.Module:
        """The nearest Monarch layer; without values for a layer on the meta device."""


class Linear(Kind):
    def fits(self, layer: nn.Module) -> bool:
        return isinstance(layer, nn.Linear)

    def weights(self, layer: nn.Module) -> list[Tensor]:
        return [cast(nn.Linear, layer).weight]

    def project(self, layer: nn.Module, blocks: Blocks, rank: int | None) -> nn.Module:
        return MonarchLinear.from_linear(cast(nn.Linear, layer), blocks, rank)


class Conv1D(Kind):
    """The layer of GPT-2 in transformers: an nn.Linear whose weight is (in, out)."""

    def fits(self, layer: nn.Module) -> bool:
        return type(layer).__name__ == "Conv1D" and type(layer).__module__ == "transformers.pytorch_utils"

    def weights(self, layer: nn.Module) -> list[Tensor]:
        return [cast(Tensor, layer.weight).T]

    def project(self, layer: nn.Module, blocks: Blocks, rank: int | None) -> nn.Module:
        weight, bias = cast(nn.Parameter, layer.weight), cast(nn.Parameter, layer.bias)
        new = MonarchLinear.from_weight(weight.detach().T, bias, blocks, rank, weight.requires_grad)
        new.replaces = "conv1d"
        return new.train(layer.training)


class Attention(Kind):
    def fits(self, layer: nn.Module) -> bool:
        return type(layer) is nn.MultiheadAttention and not unsupported(layer)

    def weights(self, layer: nn.Module) -> list[Tensor]:
        attention = cast(nn.MultiheadAttention, layer)
        if attention.in_proj_weight is not None:
            return [*attention.in_proj_weight.chunk(3), attention.out_proj.weight]
        inner = attention.q_proj_weight, attention.k_proj_weight, attention.v_proj_weight
        return [*inner, attention.out_proj.weight]

    def project(self, layer: nn.Module, blocks: Blocks, rank: int | None) -> nn.Module:
        return MonarchAttention.from_attention(cast(nn.MultiheadAttention, layer), blocks, rank)


class Experts(Kind):
    def fits(self, layer: nn.Module) -> bool:
        return is_expert_stack(layer)

    def weights(self, layer: nn.Module) -> list[Tensor]:
        transposed = cast(Any, layer).is_transposed
        weights = [layer.get_parameter(name) for name in weight_names(layer)]
        return [weight.mT if transposed else weight for weight in weights]

    def project(self, layer: nn.Module, blocks: Blocks, rank: int | None) -> nn.Module:
        return MonarchExperts(layer, blocks, rank)


KINDS: dict[str, Kind] = {
    "linear": Linear(),
    "conv1d": Conv1D(),
    "attention": Attention(),
    "experts": Experts(),
}
MonarchLayer = MonarchLinear | MonarchAttention | MonarchExperts
"""What the kinds become; each has `to_dense_layer` and `structure`."""


def kind_of(layer: nn.Module) -> Kind | None:
    """The kind of a dense layer, or None."""
    return next((kind for kind in KINDS.values() if kind.fits(layer)), None)


def monarch_layers(model: nn.Module) -> dict[str, MonarchLayer]:
    """The Monarch layers of a model by name; those inside an attention count as part of it."""
    found: dict[str, MonarchLayer] = {}
    inner: set[nn.Module] = set()
    for name, module in checked_module(model, "this function").named_modules():
        if isinstance(module, MonarchLayer) and module not in inner:
            found[name] = module
            inner.update(module.modules())
    return found


def replace(model: nn.Module, old: nn.Module, new: nn.Module) -> nn.Module:
    """Put `new` wherever `old` is registered; return the model, which is `new` if `old` was all of it."""
    if model is old:
        return new
    for module in list(model.modules()):
        # named_children names a module once; the same child may hold a second name.
        for name, child in list(module._modules.items()):
            if child is old:
                setattr(module, name, new)
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and any(part is new for part in module.modules()):
            # With padding, its fused path would read weights that the layer has not, and hand it nested tensors.
            module.use_nested_tensor = False
    return model
