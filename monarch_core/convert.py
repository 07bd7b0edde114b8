"""Turn the linear layers of a model to Monarch (dense to sparse) and back (sparse to dense), in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from torch import nn

from .linear import MonarchLinear
from .sizes import Blocks

Select = Callable[[str, nn.Linear], bool] | str | type[nn.Module] | tuple[type[nn.Module], ...]


def monarchize(
    model: nn.Module, select: Select | None = None, blocks: Blocks = 4, rank: int | None = None
) -> nn.Module:
    """Replace nn.Linear layers by the nearest MonarchLinear (projection), in place; return the model.

    `select` chooses: a predicate (name, layer) -> bool, a regular expression searched in the qualified name, or
    module types inside which the layers must lie; all of them by default.  Names, devices, dtypes, training flags
    and requires_grad stay as they are; layers that share a weight share its factors afterwards.  Left dense are

    - layers that Monarch with these blocks would not make smaller;
    - weights tied to something that is no selected nn.Linear, such as an embedding;
    - nn.MultiheadAttention: its input projection is no layer, and the weight of its output layer is read directly;
    - subclasses of nn.Linear, parametrised ones included, whose weight means something else.

    >>> model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    >>> [type(layer).__name__ for layer in monarchize(model, select="0")]
    ['MonarchLinear', 'ReLU', 'Linear']
    """
    chosen = _selected(model, select)
    weights = [id(layer.weight) for layer in chosen]
    tied_elsewhere = {
        id(parameter)
        for module in model.modules()
        if module not in chosen
        for parameter in module.parameters(recurse=False)
    }
    monarch_of: dict[int, MonarchLinear] = {}
    for layer, weight in zip(chosen, weights, strict=True):
        if weight in tied_elsewhere or not _is_smaller(layer, blocks, rank):
            continue
        known = monarch_of.get(weight)
        new = MonarchLinear.from_linear(layer, blocks, rank) if known is None else _sharing(known, layer)
        monarch_of[weight] = new
        model = _replace(model, layer, new)
    return model


def densify(model: nn.Module) -> nn.Module:
    """Replace every MonarchLinear by the nn.Linear with exactly its matrix, in place; return the model.

    Layers that share their factors share their weight afterwards.

    >>> dense = densify(nn.Sequential(MonarchLinear(64, 64), nn.ReLU()))
    >>> [type(layer).__name__ for layer in dense]
    ['Linear', 'ReLU']
    """
    linear_of: dict[int, nn.Linear] = {}
    for layer in [m for m in model.modules() if isinstance(m, MonarchLinear)]:
        new, known = layer.to_linear(), linear_of.get(id(layer.operator))
        if known is not None:
            new.weight = known.weight
        linear_of[id(layer.operator)] = new
        model = _replace(model, layer, new)
    return model


def _selected(model: nn.Module, select: Select | None) -> list[nn.Linear]:
    return [layer for name, layer in _plain_linears(model) if _matches(select, model, name, layer)]


def _plain_linears(model: nn.Module) -> Iterator[tuple[str, nn.Linear]]:
    for name, layer in model.named_modules():
        # Equality of type, not isinstance: a subclass may use its weight in another way.
        if type(layer) is nn.Linear and not any(
            isinstance(parent, nn.MultiheadAttention) for parent in _parents(model, name)
        ):
            yield name, layer


def _parents(model: nn.Module, name: str) -> list[nn.Module]:
    parts = name.split(".")
    return [model.get_submodule(".".join(parts[:depth])) for depth in range(len(parts))]


def _matches(select: Select | None, model: nn.Module, name: str, layer: nn.Linear) -> bool:
    if select is None:
        return True
    if isinstance(select, str):
        return re.search(select, name) is not None
    if isinstance(select, (type, tuple)):
        return any(isinstance(module, select) for module in (*_parents(model, name), layer))
    return select(name, layer)


def _is_smaller(layer: nn.Linear, blocks: Blocks, rank: int | None) -> bool:
    K, J = (blocks, blocks) if isinstance(blocks, int) else blocks
    if layer.in_features < K or layer.out_features < J:
        return False
    candidate = MonarchLinear(
        layer.in_features, layer.out_features, bias=False, blocks=blocks, rank=rank, device="meta"
    )
    return candidate.operator.num_parameters < layer.weight.numel()


def _sharing(known: MonarchLinear, layer: nn.Linear) -> MonarchLinear:
    """A second layer with the operator of a first one and its own bias."""
    new = MonarchLinear(layer.in_features, layer.out_features, False, known.operator.blocks, device="meta")
    new.operator, new.bias = known.operator, layer.bias
    return new.train(layer.training)


def _replace(model: nn.Module, old: nn.Module, new: nn.Module) -> nn.Module:
    """Put `new` wherever `old` is registered; return the model, which is `new` if `old` was all of it."""
    if model is old:
        return new
    for module in list(model.modules()):
        # named_children names a module once; the same child may hold a second name.
        for name, child in list(module._modules.items()):
            if child is old:
                setattr(module, name, new)
    return model
