"""A trained or classical method in use: whole volumes, slice by slice."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from data.scans import sense_pairs
from data.scans.scan import Scan
from data.scans.sense import sample
from lab import weights
from lab.errors import UserError
from mri.metrics import Complex
from mri.models import build
from mri.models.parts.method import Method
from mri.sampling import measured

SLICES_AT_ONCE = 8


class Predictor:
    """Reconstructs scans with a method, on the accelerator if there is one; `header` is that of the weights."""

    def __init__(self, method: Method, header: Mapping[str, Any] | None = None) -> None:
        self.method, self.header = method.eval().requires_grad_(False), dict(header or {})
        accelerator = None if method.on_cpu else torch.accelerator.current_accelerator(check_available=True)
        self.device = accelerator or torch.device("cpu")
        self.method.to(self.device)

    @torch.inference_mode()
    def reconstruct(
        self,
        scan: Scan,
        mask: Tensor | None,
        slices: Sequence[int] | None = None,
        advance: Callable[[int], None] = lambda images: None,
    ) -> Complex:
        """The volumes (echoes, slices, ky, kz) of a scan, in the units of the target; all its slices, or some.

        `mask` is bool (ky, kz), of a scan that was acquired undersampled what to take of its samples; None takes the
        k-space as it is, sampled where it is not zero. `advance` is told how many images have been made since it was
        last called.
        """
        (ky, kz), plane = self.method.plane, scan.matrix_shape[1:]
        if (ky, kz) != tuple(plane) and not self.method.any_plane:
            raise UserError(
                f"these weights are for slices of {ky} x {kz}, but {scan.scan_id} has {plane[0]} x {plane[1]}; "
                f"train on scans of that size, or leave it out (mri.eval --plane [{ky},{kz}])."
            )
        wanted = range(scan.num_slices) if slices is None else slices
        volumes = np.empty((scan.num_echoes, len(wanted), *plane), np.complex64)
        every = range(scan.num_echoes)
        for echoes in [every] if self.method.joins_echoes else [range(echo, echo + 1) for echo in every]:
            at_once = max(1, SLICES_AT_ONCE // len(echoes))
            for first in range(0, len(wanted), at_once):
                places = wanted[first : first + at_once]
                read = [scan.checked(index, echo) for index in places for echo in echoes]
                kspace = torch.stack([one[0] for one in read]).to(self.device) / scan.scale
                maps = torch.stack([one[1] for one in read]).to(self.device)
                masks = measured(kspace) if mask is None else mask.to(self.device).expand(len(read), -1, -1)
                masks = masks & measured(kspace) if scan.undersampled else masks
                numbers = torch.tensor(echoes, device=self.device).repeat(len(places))
                # Slices that were sampled differently go one by one: a batch shares its acquired grid.
                count = len(read) if bool((masks == masks[0]).all()) else len(echoes)
                given = (each.split(count) for each in (sample(kspace, masks), maps, masks, numbers))
                images = torch.cat([self.method(*one) for one in zip(*given, strict=True)]) * scan.scale
                made = images.unflatten(0, (len(places), len(echoes))).transpose(0, 1)
                volumes[echoes.start : echoes.stop, first : first + len(places)] = made.cpu().numpy()
                advance(len(read))
        return volumes


class InPairs(nn.Module):
    """A method in real arithmetic, for export: complex numbers have (re, im) on a last axis of 2; the mask is real."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method.in_pairs()

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        return self.method(sense_pairs.sample(kspace, mask), maps, mask, echo)


def load(path: str | Path) -> Predictor:
    """The predictor that a weights file holds."""
    file = weights.load(path, app="mri")
    return Predictor(file.rebuilt(_from_header, path), file.header)


def _from_header(header: dict[str, Any]) -> Method:
    ky, kz = header["plane"]
    if not float(header["acc"]) >= 1 or not isinstance(header["mask"], str):
        raise UserError(f"acc is {header['acc']!r} and mask is {header['mask']!r}.")
    return build(header["model"], (ky, kz), **header["options"])


def target(scan: Scan, echo: int) -> Complex:
    """The volume that full sampling gives."""
    return np.stack([scan.read(index, echo)[2].numpy() for index in range(scan.num_slices)])
