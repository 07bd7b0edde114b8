"""What training does to a sample at random: shows it under a symmetry of the problem, as good as more samples."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pde.problems import Symmetry


def random_images(symmetries: Sequence[Symmetry], *parts: Tensor) -> list[Tensor]:
    """Each sample under a product of symmetries drawn for it, the same in all parts (sample, row, column, ..., field).

    All products are equally likely.
    """
    seen = list(parts)
    for symmetry in symmetries:
        steps = torch.randint(symmetry.order(parts[0]), (len(parts[0]),), device=parts[0].device)
        seen = [symmetry.image(part, steps) for part in seen]
    return seen
