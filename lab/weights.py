"""Weights as safetensors, with a header that suffices to rebuild the model."""

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from lab.errors import UserError
from lab.files import atomic_path

LONGEST_HEADER = 16 * 2**20
"""Bytes; a vocabulary of byte pairs is the longest thing in one."""
M = TypeVar("M", bound=nn.Module)


@dataclass
class Weights:
    """Tensors by name, and the header: the model's name and options, the data, the score."""

    header: dict[str, Any]
    tensors: dict[str, torch.Tensor]

    def rebuilt(self, build: Callable[[dict[str, Any]], M], path: Path | str) -> M:
        """The trained model: `build` makes it from the header, which may come from anywhere."""
        try:
            model = build(self.header)
        except KeyError as error:
            raise UserError(
                f"the header of {path} has no entry {error}: an older version wrote it; train again."
            ) from error
        except Exception as error:  # whatever an impossible value leads to
            raise UserError(f"the header of {path} describes no model that can be built: {error}") from error
        self.load_into(model, path)
        return model

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
        # One entry of metadata, because the library writes several in any order.
        checked = {**header, "checksum": _checksum(header, tensors)}
        temporary.write_bytes(serialised(tensors, metadata={"monarch": json.dumps(checked)}))


def _checksum(header: dict[str, Any], tensors: dict[str, torch.Tensor]) -> str:
    found = zlib.crc32(json.dumps(header, sort_keys=True).encode())
    for name in sorted(tensors):
        numbers = tensors[name].reshape(-1).view(torch.uint8).numpy()
        found = zlib.crc32(numbers.data, zlib.crc32(name.encode(), found))
    return f"{found:08x}"


def load(path: Path | str, app: str) -> Weights:
    """Read a weights file of an application; an absent, truncated or foreign one is a `UserError`."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).exists():
        raise UserError(f"there is no weights file {path}.")
    if not Path(path).is_file():  # a pipe would be waited for
        raise UserError(f"{path} is not a regular file; give the path of a weights file.")
    try:
        with Path(path).open("rb") as start:
            length = int.from_bytes(start.read(8), "little")
        if length > LONGEST_HEADER:
            raise UserError(f"{path} is not a weights file of this suite: its header has {length} bytes.")
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(
            f"{path} is not a whole safetensors file ({error}); train again or restore it."
        ) from error
    if "monarch" not in metadata:
        raise UserError(f"{path} has no header of this suite, so the model it belongs to is unknown.")
    try:
        header = json.loads(metadata["monarch"])
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} has a header that is no JSON ({error}); train again or restore it."
        ) from error
    if not isinstance(header, dict):
        raise UserError(f"{path} has a header that is no table of entries; train again or restore it.")
    # Files of earlier versions have no checksum.
    if "checksum" in header and header.pop("checksum") != _checksum(header, tensors):
        raise UserError(f"{path} is damaged, for its checksum is another; train again or restore it.")
    if header.get("app") != app:
        raise UserError(f"{path} holds a model of {header.get('app')}, not of {app}; give other weights.")
    return Weights(header, tensors)
