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


def training_masks(scans: Sequence[Scan], acceleration: float, kind: Kind, count: int) -> Tensor:
    """`count` masks on the zero-padded grid, bool (count, ky, kz); made once, then read from disk."""
    pool = MaskPool(mask_spec(scans, acceleration, kind))
    return pad(pool.training(count), plane_of(list(scans)))


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


def random_shift(kspace: Tensor, maps: Tensor, target: Tensor, share: float) -> tuple[Tensor, Tensor, Tensor]:
    """Move the field of view of each slice by whole voxels, up to `share` of it: a linear phase in k-space.

    kspace and maps are (batch, coils, ky, kz), target (batch, ky, kz). What leaves on one side comes in on the
    other, which is exactly what the phase does.
    """
    phase = torch.ones((), dtype=kspace.dtype, device=kspace.device)
    rows = torch.arange(len(kspace), device=kspace.device)
    lines = []
    for n in kspace.shape[-2:]:
        shift = torch.randint(-int(share * n), int(share * n) + 1, (len(kspace), 1)).to(kspace.device)
        position = torch.arange(n, device=kspace.device)
        lines.append((position - shift) % n)
        angle = (shift * (position - n // 2) % n).double() * (-2 * torch.pi / n)
        one = torch.polar(torch.ones_like(angle), angle).to(kspace.dtype)
        phase = phase[..., None] * one[:, None] if phase.ndim else one
    y, z = lines[0][:, :, None], lines[1][:, None, :]
    moved_target = target[rows[:, None, None], y, z]
    moved_maps = maps.movedim(1, -1)[rows[:, None, None], y, z].movedim(-1, 1)
    return kspace * phase[:, None], moved_maps, moved_target


def random_turn(kspace: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply each slice, k-space and target, by a random unit complex number."""
    angle = 2 * torch.pi * torch.rand(len(kspace))
    phase = torch.polar(torch.ones_like(angle), angle).to(kspace)
    return kspace * phase[:, None, None, None], target * phase[:, None, None]
