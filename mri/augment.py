"""What training does to a slice at random: shifts and flips of the field of view, turns of the phase, noise."""

import torch
from torch import Tensor

from data.scans.sense import sample


def shifted(
    kspace: Tensor, maps: Tensor, target: Tensor, share: float, alike: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """Move the field of view of each slice by whole voxels, up to `share` of it: a linear phase in k-space.

    kspace and maps are (batch, coils, ky, kz), target (batch, ky, kz). What leaves on one side comes in on the
    other, which is exactly what the phase does. Every `alike` consecutive slices, the echoes of one, move together.
    """
    phase = torch.ones((), dtype=kspace.dtype, device=kspace.device)
    rows = torch.arange(len(kspace), device=kspace.device)
    lines = []
    for n in kspace.shape[-2:]:
        shift = torch.randint(-int(share * n), int(share * n) + 1, (len(kspace) // alike, 1))
        shift = shift.repeat_interleave(alike, 0).to(kspace.device)
        position = torch.arange(n, device=kspace.device)
        lines.append((position - shift) % n)
        angle = (shift * (position - n // 2) % n).double() * (-2 * torch.pi / n)
        one = torch.polar(torch.ones_like(angle), angle).to(kspace.dtype)
        phase = phase[..., None] * one[:, None] if phase.ndim else one
    y, z = lines[0][:, :, None], lines[1][:, None, :]
    moved_target = target[rows[:, None, None], y, z]
    moved_maps = maps.movedim(1, -1)[rows[:, None, None], y, z].movedim(-1, 1)
    return kspace * phase[:, None], moved_maps, moved_target


def turned(kspace: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply each slice, k-space and target, by a random unit complex number."""
    angle = 2 * torch.pi * torch.rand(len(kspace))
    phase = torch.polar(torch.ones_like(angle), angle).to(kspace)
    return kspace * phase[:, None, None, None], target * phase[:, None, None]


def flipped(*fields: Tensor) -> tuple[Tensor, ...]:
    """Mirror a whole batch along each of the last two axes, or not, at random; all the fields alike.

    Index n // 2 is the centre of an axis and stays where it is: k-space, maps, images and masks flip in the same way.

    >>> ky = torch.tensor([[-2, -1, 0, 1]])
    >>> {tuple(flipped(ky)[0][0].tolist()) for _ in range(50)} == {(-2, -1, 0, 1), (-2, 1, 0, -1)}
    True
    """
    for axis in (-2, -1):
        if torch.rand(()) < 0.5:
            fields = tuple(field.flip(axis).roll(1 - field.shape[axis] % 2, axis) for field in fields)
    return fields


def noisier(kspace: Tensor, mask: Tensor, noise: float) -> Tensor:
    """Add complex noise to the samples: of up to `noise` times the median of |samples|, which is mostly noise.

    Half of the slices stay as they are. The target does not change: the method learns noise levels that its
    scans do not have.
    """
    level = torch.stack([one[one != 0].abs().median() for one in sample(kspace, mask)])
    level = level.nan_to_num()  # an empty slice has no median
    level = level * noise * (torch.rand(len(kspace)) * (torch.rand(len(kspace)) < 0.5)).to(level)
    return kspace + level[:, None, None, None] * torch.randn_like(kspace)
