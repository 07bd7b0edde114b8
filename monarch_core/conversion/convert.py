"""Turn the linear layers of a model to Monarch (dense to sparse) and back (sparse to dense), in place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from .. import checks
from ..experts import MonarchStack
from ..linear import MonarchLinear
from ..monarch import Monarch
from ..sizes import Blocks, block_pair, resolve_rank
from .candidates import Candidate, Select, candidates, chosen
from .kinds import monarch_layers, replace
from .report import ConversionReport, LayerReport
from .saving import record


def monarchize(
    model: nn.Module, select: Select | None = None, blocks: Blocks = 4, rank: int | None = None
) -> ConversionReport:
    """Replace the linear layers of a model by the nearest Monarch layers (projection), in place.

    Replaced are nn.Linear, nn.MultiheadAttention, and in models of transformers Conv1D and stacks of experts.
    `select` chooses: a regular expression searched in the qualified name, module types inside which the layers must
    lie, or a predicate (name, layer) -> bool; all of them by default. Names, devices, dtypes, training flags, biases
    and requires_grad stay as they are; layers that share a weight share its factors afterwards.

    The report names every linear layer, replaced or not, and why. Left as they are:

    - layers that Monarch with these blocks would not make smaller;
    - weights tied to something that is not replaced, such as an embedding;
    - quantised layers, and subclasses of nn.Linear, whose weight means something else;
    - unless `select` names them: adapters, output heads, routers, pruned and parametrised layers.

    >>> model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    >>> nn.init.eye_(model[0].weight);  # doctest: +ELLIPSIS
    Parameter...
    >>> print(monarchize(model, select="0"))
    0  Linear 64 -> 64  replaced: 51% of the parameters, relative error 0.00
    2  Linear 64 -> 10  left: not selected
    1 of 2 linear layers replaced, 4,810 -> 2,762 parameters; 1 left: not selected
    """
    checks.module(model, "monarchize")
    blocks = block_pair(blocks)
    rank = None if rank is None else checks.whole(rank, "the rank of a Monarch operator", least=1)
    before = _count(model)
    found = candidates(model)
    if any(candidate.layer is model for candidate in found):
        raise ValueError(
            f"this {type(model).__name__} is itself the layer to replace, which cannot happen in place; "
            "use MonarchLinear.from_linear(layer), or MonarchAttention.from_attention(layer)."
        )
    reasons = chosen(model, found, select)
    _add_reasons_of_size_and_ties(model, found, reasons, blocks, rank)
    for candidate in found:  # before anything is replaced
        if not reasons[candidate.name]:
            _check_finite(candidate)
    layers, known = [], dict[int, MonarchLinear]()
    for candidate in found:
        reason = reasons[candidate.name]
        count, after, error = _count(candidate.layer), 0, None
        if not reason:
            new, error = _projected(candidate, known, blocks, rank)
            replace(model, candidate.layer, new)
            after = _count(new)
        layers.append(
            LayerReport(
                candidate.name,
                type(candidate.layer).__name__,
                candidate.size,
                not reason,
                reason,
                count,
                after or count,
                error,
            )
        )
    record(model)
    report = ConversionReport(tuple(layers), before, _count(model))
    if not report.replaced:
        others = " other than its Monarch ones" if monarch_layers(model) else ""
        what = report.summary if report.layers else f"{type(model).__name__} has no linear layers{others}"
        warnings.warn(f"monarchize replaced nothing: {what}.", stacklevel=2)
    return report


def densify(model: nn.Module) -> nn.Module:
    """Replace every Monarch layer by the dense layer with exactly its matrix, in place; return the model.

    Layers that share their factors share their weight afterwards.

    >>> dense = densify(nn.Sequential(MonarchLinear(64, 64), nn.ReLU()))
    >>> [type(layer).__name__ for layer in dense]
    ['Linear', 'ReLU']
    """
    dense_of: dict[int, nn.Module] = {}
    for layer in monarch_layers(model).values():
        new = layer.to_dense_layer()
        if isinstance(layer, MonarchLinear):
            first = dense_of.setdefault(id(layer.operator), new)
            new.weight = first.weight
        model = replace(model, layer, new)
    record(model)
    return model


def _add_reasons_of_size_and_ties(
    model: nn.Module, found: list[Candidate], reasons: dict[str, str], blocks: Blocks, rank: int | None
) -> None:
    for candidate in found:
        if not reasons[candidate.name] and not _is_smaller(candidate, blocks, rank):
            reasons[candidate.name] = "Monarch with these blocks would not be smaller"
    going = {c.layer for c in found if not reasons[c.name]}
    inside = {part for layer in going for part in layer.modules()}
    owner = {id(p): name for name, p in _owned_parameters(model, inside)}
    for candidate in found:
        if not reasons[candidate.name]:
            ties = [owner[id(p)] for p in candidate.layer.parameters() if p.dim() > 1 and id(p) in owner]
            if ties:
                reasons[candidate.name] = f"its weight is tied to {ties[0]}"


def _owned_parameters(model: nn.Module, without: set[nn.Module]) -> Iterator[tuple[str, nn.Parameter]]:
    for name, module in model.named_modules():
        if module not in without:
            for parameter in module.parameters(recurse=False):
                yield name, parameter


def _is_smaller(candidate: Candidate, blocks: Blocks, rank: int | None) -> bool:
    assert candidate.kind is not None
    K, J = block_pair(blocks)
    dense = monarch = 0
    for weight in candidate.kind.weights(candidate.layer):
        out_features, in_features = weight.shape[-2:]
        if in_features < K or out_features < J:
            return False
        count, r = (
            weight.shape[0] if weight.dim() == 3 else 1,
            resolve_rank(in_features, out_features, (K, J), rank),
        )
        dense += weight.numel()
        monarch += count * K * J * r * (-(-in_features // K) + -(-out_features // J))
    return monarch < dense


def _check_finite(candidate: Candidate) -> None:
    assert candidate.kind is not None
    for weight in candidate.kind.weights(candidate.layer):
        if not weight.is_meta:
            checks.finite(weight, f"the weight of {candidate.name}")


def _projected(
    candidate: Candidate, known: dict[int, MonarchLinear], blocks: Blocks, rank: int | None
) -> tuple[nn.Module, float | None]:
    """The Monarch layer and the relative error of its projection; a weight met before gives its factors again."""
    assert candidate.kind is not None
    weights = candidate.kind.weights(candidate.layer)
    weight = candidate.layer._parameters.get("weight")
    first = known.get(id(weight))
    if first is not None:
        assert weight is not None
        new = MonarchLinear(
            first.in_features, first.out_features, False, first.operator.blocks, device="meta"
        )
        new.operator, new.bias, new.replaces = (
            first.operator,
            candidate.layer._parameters.get("bias"),
            first.replaces,
        )
        return new.train(candidate.layer.training), _relative_error(weights, new)
    made = candidate.kind.project(candidate.layer, blocks, rank)
    if isinstance(made, MonarchLinear) and weight is not None:
        known[id(weight)] = made
    return made, _relative_error(weights, made)


@torch.no_grad()
def _relative_error(weights: list[Tensor], layer: nn.Module) -> float | None:
    """||W - M|| / ||W||. M is an orthogonal projection of W, so ||W - M||^2 = ||W||^2 - ||M||^2, and its rank-one
    parts are orthogonal within a sub-block, so ||M||^2 is the sum of their squared norms."""
    if any(weight.is_meta for weight in weights):
        return None
    size = sum(float(weight.double().square().sum()) for weight in weights)
    kept = 0.0
    for module in layer.modules():
        if isinstance(module, (Monarch, MonarchStack)):
            rows = module.R.double().square().sum(-1)
            columns = module.L.double().square().sum(-3).movedim(-3, -2)  # (..., J, K, r) -> (..., K, J, r)
            kept += float((rows * columns).sum())
    return max(0.0, 1 - kept / size) ** 0.5 if size > 0 else 0.0


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters() if not isinstance(p, UninitializedParameter))
