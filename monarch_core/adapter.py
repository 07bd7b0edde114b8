"""Monarch adapters: fine-tune a frozen model by a small Monarch matrix beside each chosen linear layer.

MoRe (Tan et al. 2024, arXiv 2408.17383): y = W x + M x with M = P L P^T R of few blocks and a small rank, zero at the
start because L is. The paper's rank per block is J times the rank of the sub-blocks here: four blocks of rank 1 are its
default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from . import checks
from .conversion.candidates import Candidate, Select, candidates, chosen
from .conversion.kinds import KINDS, replace
from .conversion.saving import load_file, record, whole_file
from .linear import MonarchLinear
from .monarch import Monarch
from .sizes import Blocks, resolve_blocks


class MonarchAdapter(nn.Module):
    """y = base(x) + M x: a frozen linear layer and a Monarch matrix that starts at zero and trains."""

    def __init__(self, base: nn.Module, blocks: Blocks = 4, rank: int = 1) -> None:
        super().__init__()
        weight = _weight(base)
        self.operator = Monarch(
            weight.shape[1], weight.shape[0], blocks, rank, device=weight.device, dtype=weight.dtype
        )
        self.base = base.requires_grad_(False)
        nn.init.zeros_(self.operator.L)
        self.train(base.training)

    @property
    def weight(self) -> Tensor:
        """The weight of the base layer with M added, for code that reads the weight of a layer."""
        return _plus(self.base, self.operator)

    @property
    def bias(self) -> nn.Parameter | None:
        """The bias of the base layer."""
        return cast("nn.Parameter | None", self.base.bias)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.base(x) + self.operator(x)
        return y

    @torch.no_grad()
    def merged(self) -> nn.Module:
        """The base layer with M added to its weight, which is its own afterwards: what it was tied to stays as it is.

        A MonarchLinear with the same blocks stays one, since ranks add up: [L, L'] [R; R']. With others it turns dense.
        """
        base, M = self.base, self.operator
        if isinstance(base, MonarchLinear) and base.operator.blocks == M.blocks:
            R = torch.cat((base.operator.R, M.R), 2)
            L = torch.cat((base.operator.L, M.L), 3)
            trains = base.operator.R.requires_grad
            base.operator = Monarch.from_factors(R, L, M.in_features, M.out_features).requires_grad_(trains)
            return base.train(base.training)
        if isinstance(base, MonarchLinear):
            base = base.to_dense_layer()
        weight = _stored_weight(base)
        base.weight = nn.Parameter(_plus(base, M), requires_grad=weight.requires_grad)
        return base


def attach_adapter(
    model: nn.Module, select: Select | None = None, blocks: Blocks = 4, rank: int = 1
) -> tuple[str, ...]:
    """Put a MonarchAdapter around linear layers, in place, and freeze everything else; return their names.

    `select` chooses as in `monarchize`; by default all linear layers but heads and other adapters. nn.Linear,
    MonarchLinear and transformers' Conv1D can be adapted.

    >>> model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    >>> attach_adapter(model, select="0", blocks=4, rank=1)
    ('0',)
    >>> [name for name, p in model.named_parameters() if p.requires_grad]
    ['0.operator.R', '0.operator.L']
    """
    found = [c for c in _adaptable(model) if not c.impossible]
    if not found and _adapters(model):
        raise ValueError(
            f"all linear layers of this {type(model).__name__} that can have an adapter have one; merge_adapter adds "
            "them to the weights."
        )
    if not found:
        raise ValueError(
            f"{type(model).__name__} has no linear layers inside that an adapter could stand beside; for a layer by "
            "itself, use MonarchAdapter(layer)."
        )
    reasons = chosen(model, found, select)
    names = tuple(name for name, reason in reasons.items() if not reason)
    if not names:
        raise ValueError(f"select chooses no layer to adapt: {next(iter(reasons.values()))}.")
    taken = [c.layer for c in found if c.name in names]
    for layer in taken:  # before anything is frozen
        out_features, in_features = _weight(layer).shape
        resolve_blocks(in_features, out_features, blocks)
    rank = checks.whole(rank, "the rank of a Monarch operator", least=1)
    pairs = [(layer, MonarchAdapter(layer, blocks, rank)) for layer in taken]
    model.requires_grad_(False)
    for layer, adapter in pairs:
        replace(model, layer, adapter)
    for adapter in _adapters(model).values():
        adapter.operator.requires_grad_(True)
    return names


def merge_adapter(model: nn.Module) -> nn.Module:
    """Add every adapter to the layer it stands beside, in place; return the model, which computes the same."""
    adapters = _adapters(model, required=True).values()
    for adapter in adapters:  # before any is merged
        if not isinstance(adapter.base, MonarchLinear):
            _stored_weight(adapter.base)
    for adapter in adapters:
        model = replace(model, adapter, adapter.merged())
    record(model)
    return model


def save_adapter(model: nn.Module, path: str | Path) -> None:
    """Write the adapters of a model, and nothing else of it, to one file."""
    layers = {
        name: {
            "blocks": list(adapter.operator.blocks),
            "rank": adapter.operator.rank,
            "R": adapter.operator.R.detach(),
            "L": adapter.operator.L.detach(),
        }
        for name, adapter in _adapters(model, required=True).items()
    }
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        torch.save({"version": 1, "layers": layers}, file)


def load_adapter(model: nn.Module, path: str | Path) -> nn.Module:
    """Attach the adapters stored in a file to the model that they were trained on, in place; return the model.

    A layer that is all of the model comes back as a MonarchAdapter.
    """
    checks.module(model, "load_adapter")
    layers: dict[str, dict[str, Any]] = load_file(path, "Monarch adapters").get("layers", {})
    if not layers:
        raise ValueError(f"{path} holds no Monarch adapters; save_adapter writes such files.")
    modules = dict(model.named_modules())
    missing = [name for name in layers if name not in modules]
    if missing:
        raise ValueError(
            f"the adapters in {path} belong to another model: {type(model).__name__} has no layer {missing[0]!r}."
        )
    for name, entry in layers.items():  # before anything is frozen
        out_features, in_features = _weight(modules[name]).shape
        fitting = Monarch(in_features, out_features, tuple(entry["blocks"]), entry["rank"], device="meta")
        for factor in ("R", "L"):
            here, there = getattr(fitting, factor).shape, entry[factor].shape
            if here != there:
                raise ValueError(
                    f"the adapter of {name} in {path} is for a layer of another size: {there}, not {here}."
                )
    model.requires_grad_(False)
    for name, entry in layers.items():
        adapter = MonarchAdapter(modules[name], tuple(entry["blocks"]), entry["rank"])
        adapter.operator.load_state_dict({"R": entry["R"], "L": entry["L"]})
        model = replace(model, modules[name], adapter)
    return model


def _adaptable(model: nn.Module) -> list[Candidate]:
    """The dense layers that are candidates for conversion, and Monarch ones, without those that have an adapter."""
    taken = {part for adapter in _adapters(model).values() for part in adapter.modules()}
    dense = [c for c in candidates(model) if c.kind in (KINDS["linear"], KINDS["conv1d"])]
    monarch = [
        Candidate(name, layer, None)
        for name, layer in model.named_modules()
        if isinstance(layer, MonarchLinear)
    ]
    order = {name: at for at, (name, _) in enumerate(model.named_modules())}
    found = [c for c in (*dense, *monarch) if c.layer not in taken and c.layer is not model]
    return sorted(found, key=lambda candidate: order[candidate.name])


def _adapters(model: nn.Module, required: bool = False) -> dict[str, MonarchAdapter]:
    found = {
        name: m
        for name, m in checks.module(model, "this function").named_modules()
        if isinstance(m, MonarchAdapter)
    }
    if required and not found:
        raise ValueError(
            f"{type(model).__name__} has no Monarch adapters; attach_adapter puts them in place."
        )
    return found


def _stored_weight(layer: nn.Module) -> nn.Parameter:
    """The weight that a layer stores, if it does."""
    weight = layer._parameters.get("weight")
    if weight is None:
        raise ValueError(
            "the weight of a pruned or parametrised layer is computed, so nothing can be merged into it; make it "
            "permanent first, with torch.nn.utils.prune.remove or parametrize.remove_parametrizations."
        )
    return weight


def _plus(layer: nn.Module, M: Monarch) -> Tensor:
    """The weight of a layer plus M, in the layer's layout."""
    added = M.to_dense()
    return cast(Tensor, layer.weight) + (added.T if KINDS["conv1d"].fits(layer) else added)


def _weight(layer: nn.Module) -> Tensor:
    """The weight (out, in) of a layer, without values for a Monarch layer."""
    if isinstance(layer, MonarchLinear):
        return layer.operator.R.new_empty(()).expand(layer.out_features, layer.in_features)
    if KINDS["conv1d"].fits(layer) or KINDS["linear"].fits(layer):
        kind = KINDS["conv1d" if KINDS["conv1d"].fits(layer) else "linear"]
        return kind.weights(layer)[0]
    raise TypeError(f"a Monarch adapter stands beside a linear layer; got {type(layer).__name__}.")
