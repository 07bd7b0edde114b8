"""Symmetries of the problems: maps of fields that turn solutions into solutions.

Training may show every sample under a random one, which is as good as more samples. The symmetries are those of the
equations and of the domain; that the solvers have them, too, is tested.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from pde.problems import Problem

ROWS, COLUMNS = 1, 2
"""Axes of fields (sample, row, column, ..., field)."""


def mirrored(fields: Tensor, axis: int, odd: Sequence[int] = ()) -> Tensor:
    """The mirror image along an axis, where the `odd` fields have the other sign."""
    image = fields.flip(axis)
    image[..., list(odd)] *= -1
    return image


def transposed(fields: Tensor, *, vector: bool = False) -> Tensor:
    """The mirror image in the diagonal; the two components of a vector change places with the axes."""
    image = fields.transpose(ROWS, COLUMNS)
    return image.flip(-1) if vector else image


def turned(fields: Tensor, points: Tensor) -> Tensor:
    """Each sample moved along its columns, which are periodic, by a number of points of its own."""
    samples, columns = len(fields), fields.shape[COLUMNS]
    source = (torch.arange(columns, device=fields.device) - points[:, None]) % columns
    which = torch.arange(samples, device=fields.device)[:, None]
    return fields.transpose(ROWS, COLUMNS)[which, source].transpose(ROWS, COLUMNS)


GENERATORS: dict[str, tuple[Callable[[Tensor], Tensor], ...]] = {
    "darcy": (partial(mirrored, axis=ROWS), partial(mirrored, axis=COLUMNS), transposed),
    # Fields u, v. A velocity turns around in the mirror that it faces.
    "burgers-walls": (
        partial(mirrored, axis=ROWS, odd=(0,)),
        partial(mirrored, axis=COLUMNS, odd=(1,)),
        partial(transposed, vector=True),
    ),
    # Fields geopotential, vorticity, divergence. In the mirror of the equator whirls turn the other way, as the
    # Coriolis force of the other hemisphere does.
    "shallow-water": (partial(mirrored, axis=ROWS, odd=(1,)),),
}
"""Symmetries of which each sample has each with probability 1/2, one after the other; on the sphere all turns about
the axis besides. Every symmetry of a problem is a product of these, all equally likely."""


def seen_through_symmetries(problem: Problem, *parts: Tensor) -> list[Tensor]:
    """Each sample under a symmetry drawn for it, the same in all parts (sample, row, column, ..., field)."""
    samples, device = len(parts[0]), parts[0].device
    seen = list(parts)
    for image in GENERATORS[problem.name]:
        drawn = torch.rand(samples, device=device) < 0.5
        seen = [torch.where(drawn.view(-1, *[1] * (part.ndim - 1)), image(part), part) for part in seen]
    if problem.sphere:
        points = torch.randint(parts[0].shape[COLUMNS], (samples,), device=device)
        seen = [turned(part, points) for part in seen]
    return seen
