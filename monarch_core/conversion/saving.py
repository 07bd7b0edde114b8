"""A converted model on disk: the structure of its Monarch layers beside its weights, and back."""

from __future__ import annotations

import copy
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import checks
from ..linear import MonarchLinear
from .kinds import KINDS, MonarchLayer, monarch_layers, replace

STRUCTURE, WEIGHTS = "monarch.json", "weights.pt"
METHOD = "monarch"
Structure = dict[str, dict[str, Any]]


def structure(model: nn.Module) -> Structure:
    """The Monarch layers of a model: for each name its kind, blocks and rank, or the layer whose factors it shares.

    >>> structure(nn.Sequential(MonarchLinear(64, 64, blocks=4)))
    {'0': {'kind': 'linear', 'blocks': [4, 4], 'rank': 4}}
    """
    first: dict[int, str] = {}
    found: Structure = {}
    for name, layer in monarch_layers(model).items():
        found[name] = layer.structure()
        if isinstance(layer, MonarchLinear):
            owner = first.setdefault(id(layer.operator), name)
            if owner != name:
                found[name]["shares"] = owner
    return found


def rebuild(model: nn.Module, layers: Structure) -> None:
    """Give a dense model the Monarch layers of a structure, without values, in place."""
    modules = dict(model.named_modules())
    found: dict[str, nn.Module] = {}
    for name, entry in layers.items():  # nothing is replaced before all of it is known to fit
        here = _name_here(name, modules, getattr(model, "base_model_prefix", ""))
        if here is None:
            continue
        if here not in modules:
            raise ValueError(
                f"the stored structure has a Monarch layer {name!r}, which {type(model).__name__} does not have; "
                "load it into the model it was saved from."
            )
        old = modules[here]
        if not _is_like(old, entry) and not KINDS[entry["kind"]].fits(old):
            raise ValueError(
                f"{here} should be a dense layer ({entry['kind']}); it is a {type(old).__name__}."
            )
        found[name] = old
    if layers and not found:
        raise ValueError(
            f"none of the stored Monarch layers, such as {next(iter(layers))!r}, is in {type(model).__name__}."
        )
    new: dict[str, nn.Module] = {}
    for name, old in found.items():
        new[name] = old if _is_like(old, layers[name]) else _without_values(old, layers[name])
        if "shares" in layers[name]:
            new[name].operator = new[layers[name]["shares"]].operator
        replace(model, old, new[name])


def _name_here(name: str, modules: dict[str, nn.Module], prefix: str) -> str | None:
    """What a stored layer is called here; None for one of a head that the model does not have.

    Models of transformers with and without a head share their weights, and one has a prefix before the names.
    """
    if name in modules or not prefix:
        return name
    if prefix in modules:
        return f"{prefix}.{name}"
    return name.removeprefix(f"{prefix}.") if name.startswith(f"{prefix}.") else None


def _is_like(layer: nn.Module, entry: dict[str, Any]) -> bool:
    """Whether the layer is the stored Monarch layer already, but for its values."""
    return isinstance(layer, MonarchLayer) and layer.structure().items() <= entry.items()


def _without_values(old: nn.Module, entry: dict[str, Any]) -> nn.Module:
    kind, (K, J) = KINDS[entry["kind"]], entry["blocks"]
    weight = kind.weights(old)[0]
    new = kind.project(copy.deepcopy(old).to("meta"), (K, J), entry["rank"])
    return new if weight.is_meta else new.to_empty(device=weight.device)


def save_converted(model: nn.Module, folder: str | Path) -> None:
    """Write the structure (monarch.json) and the weights (weights.pt) of a model with Monarch layers."""
    layers = structure(model)
    if not layers:
        raise ValueError(f"this {type(model).__name__} has no Monarch layers; save it as any other model.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(folder / STRUCTURE) as described, whole_file(folder / WEIGHTS) as weights:
        described.write_text(json.dumps({"version": 1, "layers": layers}, indent=1))
        torch.save(model.state_dict(), weights)


def load_converted(model: nn.Module, folder: str | Path) -> nn.Module:
    """Turn a dense model into the converted one that was stored in a folder, in place; return it.

    The folder comes from `save_converted`, or from `save_pretrained` of a converted transformers model. The model
    is the dense one that was converted, with any values, also on the meta device.
    """
    folder = Path(folder)
    checks.module(model, "load_converted")
    rebuild(model, _stored_structure(folder))
    on_meta = any(p.is_meta for p in model.parameters())
    try:
        model.load_state_dict(_stored_weights(model, folder), assign=on_meta)
    except RuntimeError as error:
        raise ValueError(
            f"the weights in {folder} do not fit this {type(model).__name__}: {error}"
        ) from error
    tie = getattr(model, "tie_weights", None)
    if on_meta and callable(tie):
        tie()
    record(model)
    return model


def record(model: nn.Module) -> None:
    """Have the configurations of transformers models tell of the Monarch layers, for `save_pretrained`."""
    modeling = sys.modules.get("transformers.modeling_utils")
    if modeling is None:  # then there are no such models
        return
    parts = list(model.modules())
    if any(isinstance(part, modeling.PreTrainedModel) for part in parts):
        from ..integrations.transformers import note

        note(model)
    elif (
        structure(model)
        and any(type(part).__module__.startswith("transformers.models.") for part in parts)
        and not any(_is_noted(getattr(part, "config", None)) for part in parts)
    ):
        warnings.warn(
            f"this {type(model).__name__} is a part of a transformers model, whose save_pretrained will not know of "
            "its Monarch layers; convert the whole model with select=..., or store it with save_converted.",
            stacklevel=3,
        )


def _is_noted(config: Any) -> bool:
    return hasattr(getattr(config, "quantization_config", None), "layers")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; once it is whole, the file takes the place of the one that may be there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load_file(path: str | Path, what: str) -> dict[str, Any]:
    """The dictionary that torch.save wrote to a file, tensors on the CPU; nothing in the file is executed."""
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # torch raises whatever its readers of zip and pickle do
        raise ValueError(f"{path} is damaged, or does not hold {what}: {error}") from error
    if not isinstance(loaded, dict):
        raise ValueError(f"{path} does not hold {what} but a {type(loaded).__name__}.")
    return loaded


def _stored_structure(folder: Path) -> Structure:
    file = folder / STRUCTURE
    if file.is_file():
        return _layers(file, _read(file))
    file = folder / "config.json"
    entry = _read(file).get("quantization_config", {}) if file.is_file() else {}
    if entry.get("quant_method") != METHOD:
        raise FileNotFoundError(
            f"{folder} holds no converted model: expected {STRUCTURE}, or a config.json with a Monarch structure."
        )
    return _layers(file, entry)


def _read(file: Path) -> dict[str, Any]:
    try:
        entry = json.loads(file.read_text())
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}.") from error
    return entry if isinstance(entry, dict) else {}


def _layers(file: Path, entry: dict[str, Any]) -> Structure:
    layers = entry.get("layers")
    if not isinstance(layers, dict) or not all(_is_layer(layer) for layer in layers.values()):
        raise ValueError(f"{file} does not describe Monarch layers; was it written by save_converted?")
    return layers


def _is_layer(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.keys() >= {"kind", "blocks", "rank"}
        and entry["kind"] in KINDS
        and isinstance(entry["blocks"], list)
        and len(entry["blocks"]) == 2
    )


def _stored_weights(model: nn.Module, folder: Path) -> dict[str, Tensor]:
    if (folder / WEIGHTS).is_file():
        weights: dict[str, Tensor] = load_file(folder / WEIGHTS, "the weights of a converted model")
        return weights
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        raise ValueError(
            f"{folder} comes from save_pretrained, and {type(model).__name__} is no model of transformers; "
            "store it with save_converted."
        )
    # Names on disk may differ from those in the model; transformers knows how.
    loaded: dict[str, Tensor] = type(model).from_pretrained(folder).state_dict()
    return loaded
