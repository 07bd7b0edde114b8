"""Weights as safetensors, with a header that suffices to rebuild the model."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lab.errors import UserError
from lab.files import atomic_path


@dataclass
class Weights:
    """Tensors by name, and the header: the model's name and options, the data, the score."""

    header: dict[str, Any]
    tensors: dict[str, torch.Tensor]

    def load_into(self, model: nn.Module, path: Path | str = "the file") -> None:
        """Copy the tensors into a model built from the header."""
        try:
            model.load_state_dict(self.tensors)
        except RuntimeError as error:
            first = str(error).split("\n")[1].strip() if "\n" in str(error) else str(error)
            raise UserError(
                f"the weights in {path} do not fit the model its header describes: {first}"
            ) from error


def save(path: Path, model: nn.Module, header: dict[str, Any]) -> None:
    """Write a model's state and its header, atomically. Tied tensors are stored once per name."""
    from safetensors.torch import save as serialised

    tensors = {
        name: tensor.detach().cpu().clone().contiguous() for name, tensor in model.state_dict().items()
    }
    with atomic_path(path) as temporary:
        # Not by the library's own writer, whose temporary file a kill would leave and whose errors are no OSError.
        temporary.write_bytes(serialised(tensors, metadata={"monarch": json.dumps(header)}))


def load(path: Path | str, app: str) -> Weights:
    """Read a weights file of an application; an absent, truncated or foreign one is a `UserError`."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise UserError(f"there is no weights file {path}.") from error
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{path} is not a whole safetensors file ({error}); train again or restore it."
        ) from error
    if "monarch" not in metadata:
        raise UserError(f"{path} has no header of this suite, so the model it belongs to is unknown.")
    header = json.loads(metadata["monarch"])
    if header.get("app") != app:
        raise UserError(f"{path} holds a model of {header.get('app')}, not of {app}; give other weights.")
    return Weights(header, tensors)
