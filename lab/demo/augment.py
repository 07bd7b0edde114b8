"""What training does to a sample at random."""

import torch
from torch import Tensor


def flipped(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Each pair with a random sign, the same for both: if y = M x, then -y = M (-x)."""
    sign = torch.randint(0, 2, (len(x), 1), device=x.device) * 2 - 1
    return sign * x, sign * y
