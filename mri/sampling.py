"""Which points of k-space are sampled: a pool of masks for training, one fixed mask per scan for evaluation."""

from collections.abc import Sequence

import torch
from torch import Tensor

from data.masks.pool import MaskPool, pad
from data.masks.spec import Kind, MaskSpec
from data.scans.scan import Scan
from lab.errors import UserError
from mri.sources import plane_of


def mask_spec(scans: Sequence[Scan], acceleration: float, kind: Kind) -> MaskSpec:
    """The masks for scans that were all acquired on one grid."""
    grids = {scan.acquired_grid for scan in scans}
    if len(grids) != 1:
        raise UserError(f"the scans should be acquired on one grid, but these have {sorted(grids)}.")
    return MaskSpec(kind, grids.pop(), acceleration)


def training_masks(scans: Sequence[Scan], accelerations: Sequence[float], kind: Kind, count: int) -> Tensor:
    """`count` masks of each acceleration on the zero-padded grid, bool (masks, ky, kz); made once, then read."""
    pools = [MaskPool(mask_spec(scans, acceleration, kind)) for acceleration in accelerations]
    return pad(torch.cat([pool.training(count) for pool in pools]), plane_of(list(scans)))


def evaluation_masks(scans: Sequence[Scan], acceleration: float, kind: Kind) -> dict[str, Tensor]:
    """Each scan's own mask, bool (ky, kz): the one in its file, else one whose seed is the scan's name."""
    stored = {scan.scan_id: _stored(scan, acceleration, kind) for scan in scans}
    without = [scan for scan in scans if stored[scan.scan_id] is None]
    made = (
        MaskPool(mask_spec(without, acceleration, kind)).for_scans([s.scan_id for s in without])
        if without
        else {}
    )
    masks = {}
    for scan in scans:
        mask = stored[scan.scan_id]
        masks[scan.scan_id] = pad(made[scan.scan_id] if mask is None else mask, scan.matrix_shape[1:])
    return masks


def measured(kspace: Tensor) -> Tensor:
    """Where an undersampled scan (coils, ky, kz) was sampled: wherever any coil is not zero."""
    return (kspace != 0).any(-3)


def _stored(scan: Scan, acceleration: float, kind: Kind) -> Tensor | None:
    return scan.mask(acceleration) if kind == "poisson" else None
