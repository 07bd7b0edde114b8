"""Which points of k-space are sampled: a pool of masks for training, one fixed mask per scan for evaluation.

A scan that was acquired undersampled has been sampled already: the mask of a slice is where it is not zero.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from data.masks.pool import MaskPool, pad
from data.masks.spec import Kind, MaskSpec
from data.scans.scan import Scan


def training_masks(
    scans: Sequence[Scan], accelerations: Sequence[float], kind: Kind, count: int
) -> dict[str, Tensor]:
    """For each scan `count` masks of each acceleration on its zero-padded grid, bool (masks, ky, kz).

    They are made once, then read; scans of one size share them.
    """
    specs = {
        scan.acquired_grid: [
            MaskSpec(kind, scan.acquired_grid, acceleration) for acceleration in accelerations
        ]
        for scan in scans
    }  # all are checked before the first mask is made
    pools = {
        grid: torch.cat([MaskPool(spec).training(count) for spec in several])
        for grid, several in specs.items()
    }
    sizes = {(scan.acquired_grid, scan.matrix_shape[1:]) for scan in scans}
    padded = {(grid, plane): pad(pools[grid], plane) for grid, plane in sizes}
    return {scan.scan_id: padded[scan.acquired_grid, scan.matrix_shape[1:]] for scan in scans}


def evaluation_masks(scans: Sequence[Scan], acceleration: float, kind: Kind) -> dict[str, Tensor]:
    """Each scan's own mask, bool (ky, kz): the one in its file, else one whose seed is the scan's name."""
    stored = {scan.scan_id: _stored(scan, acceleration, kind) for scan in scans}
    without: dict[tuple[int, int], list[str]] = {}
    for scan in scans:
        if stored[scan.scan_id] is None:
            without.setdefault(scan.acquired_grid, []).append(scan.scan_id)
    made: dict[str, Tensor] = {}
    for grid, names in without.items():
        made |= MaskPool(MaskSpec(kind, grid, acceleration)).for_scans(names)
    masks = {}
    for scan in scans:
        mask = stored[scan.scan_id]
        masks[scan.scan_id] = pad(made[scan.scan_id] if mask is None else mask, scan.matrix_shape[1:])
    return masks


def own_accelerations(scans: Sequence[Scan]) -> dict[str, float]:
    """Those of the scans that were acquired undersampled, by scan."""
    return {scan.scan_id: round(scan.sampling.acceleration, 2) for scan in scans if scan.undersampled}


def measured(kspace: Tensor) -> Tensor:
    """Where an undersampled scan (coils, ky, kz) was sampled: wherever any coil is not zero."""
    return (kspace != 0).any(-3)


def _stored(scan: Scan, acceleration: float, kind: Kind) -> Tensor | None:
    return scan.mask(acceleration) if kind == "poisson" else None
