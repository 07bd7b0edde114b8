"""From a method's name and options to the method, and back from a weights file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lab import weights
from lab.errors import UserError
from mri.config import MODELS
from mri.models.classical import CgSense, L1Wavelet
from mri.models.dc_sense import DcSense
from mri.models.method import Method
from mri.models.msense import MSense, Weights
from mri.models.sense import Sense
from mri.models.unet import UNet

OPTIONS = {"msense": ("form", "per_echo", "steps", "consistency"), "unet": ("channels",)}
"""The options of the command line that shape a model; they travel in the header of its weights."""


def build(
    name: str,
    plane: tuple[int, int],
    options: Mapping[str, Any] | None = None,
    *,
    density: Tensor | None = None,
    start: Weights | None = None,
) -> Method:
    """The method of this name for slices of this size.

    `density` is the sampling density for dc-sense, `start` the weights that mSENSE starts with.

    >>> build("unet", (96, 40), {"channels": 4}).num_parameters
    121266
    """
    chosen = dict(options or {})
    if name == "sense":
        return Sense(plane)
    if name == "dc-sense":
        return DcSense(plane, density)
    if name == "cg-sense":
        return CgSense(plane)
    if name == "l1-wavelet":
        return L1Wavelet(plane)
    if name == "unet":
        return UNet(plane, chosen.get("channels", 32))
    if name == "msense":
        return MSense(
            plane,
            chosen.get("form", "separable"),
            2 if chosen.get("per_echo") else 1,
            chosen.get("steps", 1),
            chosen.get("consistency", False),
            start,
        )
    raise UserError(f"there is no method {name!r}; choose one of {', '.join(MODELS)}.")


def header(name: str, plane: tuple[int, int], options: Mapping[str, Any]) -> dict[str, Any]:
    """What a weights file says about its model, enough for `load` to build it."""
    kept = {key: options[key] for key in OPTIONS.get(name, ())}
    return {"app": "mri", "model": name, "plane": list(plane), "options": kept}


def load(path: str | Path) -> tuple[Method, dict[str, Any]]:
    """The method that a weights file holds, ready for use, and the file's header."""
    file = weights.load(path)
    if file.header.get("app") != "mri":
        raise UserError(f"{path} holds a model of {file.header.get('app')!r}, not of mri.")
    ky, kz = file.header["plane"]
    method = build(file.header["model"], (ky, kz), file.header["options"])
    file.load_into(method, path)
    return method.eval().requires_grad_(False), file.header


def check_plane(method: Method, plane: tuple[int, int], what: str) -> None:
    """Refuse slices of another size than the method was made for."""
    if method.plane != tuple(plane) and not isinstance(method, (Sense, CgSense, L1Wavelet, UNet)):
        raise UserError(
            f"these weights are for slices of {method.plane[0]} x {method.plane[1]}, but {what} has "
            f"{plane[0]} x {plane[1]}; train on scans of that size."
        )


def to_device(method: Method) -> torch.device:
    """Where a method computes: the accelerator, if there is one and the method runs on it."""
    if torch.accelerator.is_available() and not isinstance(method, (CgSense, L1Wavelet)):
        device = torch.accelerator.current_accelerator()
        assert device is not None
        method.to(device)
        return device
    return torch.device("cpu")
