"""Whole volumes through a method, slice by slice."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from data.scans.scan import Scan
from data.scans.sense import sample
from mri.metrics import Complex
from mri.models.method import Method
from mri.models.registry import check_plane, to_device
from mri.sampling import measured

SLICES_AT_ONCE = 8


@torch.no_grad()
def reconstruct(
    method: Method,
    scan: Scan,
    echo: int,
    mask: Tensor | None,
    advance: Callable[[int], None] = lambda slices: None,
) -> Complex:
    """The volume (slices, ky, kz) of one echo, in the units of the target.

    `mask` is bool (ky, kz); None takes the k-space as it is, sampled where it is not zero.
    """
    check_plane(method, scan.matrix_shape[1:], scan.scan_id)
    device = to_device(method)
    volume = np.empty(scan.matrix_shape, np.complex64)
    for first in range(0, scan.num_slices, SLICES_AT_ONCE):
        chosen = range(first, min(first + SLICES_AT_ONCE, scan.num_slices))
        read = [scan.read(index, echo) for index in chosen]
        kspace = torch.stack([one[0] for one in read]).to(device) / scan.scale
        maps = torch.stack([one[1] for one in read]).to(device)
        masks = measured(kspace) if mask is None else mask.to(device).expand(len(chosen), -1, -1)
        image = method(sample(kspace, masks), maps, masks, torch.full((len(chosen),), echo, device=device))
        volume[first : chosen[-1] + 1] = (image * scan.scale).cpu().numpy()
        advance(len(chosen))
    return volume


def target(scan: Scan, echo: int) -> Complex:
    """The volume that full sampling gives."""
    volume = np.empty(scan.matrix_shape, np.complex64)
    for index in range(scan.num_slices):
        volume[index] = scan.read(index, echo)[2].numpy()
    return volume
