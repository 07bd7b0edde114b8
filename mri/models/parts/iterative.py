"""Iterative reconstruction by sigpy: what a scanner or a BART user would run."""

from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor

from mri.models.parts.method import Tunable, sense_flops


class Iterative(Tunable):
    """One slice after the other through a sigpy app, on the CPU; `strength` is its regularisation."""

    any_plane = True
    on_cpu = True
    not_in_pairs_because = "its iterations are those of sigpy, outside torch"
    iterations: int

    def __init__(self, plane: tuple[int, int], density: Tensor | None = None, strength: float = 0.01) -> None:
        super().__init__(plane, density, strength)

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        images = [
            self.solve(y.numpy(), s.numpy(), m.numpy().astype(np.float32))
            for y, s, m in zip(kspace.cpu(), maps.cpu(), mask.cpu(), strict=True)
        ]
        return torch.from_numpy(np.stack(images)).to(kspace)

    @abstractmethod
    def solve(self, kspace: np.ndarray, maps: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """The image (ky, kz) of one slice."""

    def flops(self, coils: int) -> int:
        return 2 * self.iterations * sense_flops(self.plane, coils)
