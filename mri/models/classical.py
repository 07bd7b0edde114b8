"""Iterative SENSE and compressed sensing, by sigpy: what a scanner or a BART user would run."""

from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor

from mri.models.method import Tunable, sense_flops


class _Iterative(Tunable):
    """One slice after the other through a sigpy app, on the CPU; `strength` is its regularisation."""

    iterations: int

    def __init__(self, plane: tuple[int, int], strength: float = 0.01) -> None:
        super().__init__(plane, strength)

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        images = [
            self._solve(y.numpy(), s.numpy(), m.numpy().astype(np.float32))
            for y, s, m in zip(kspace.cpu(), maps.cpu(), mask.cpu(), strict=True)
        ]
        return torch.from_numpy(np.stack(images)).to(kspace)

    @abstractmethod
    def _solve(self, kspace: np.ndarray, maps: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """The image (ky, kz) of one slice."""

    def flops(self, coils: int) -> int:
        return 2 * self.iterations * sense_flops(self.plane, coils)


class CgSense(_Iterative):
    """min_x |M F S x - y|^2 + strength |x|^2, by conjugate gradients."""

    candidates = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
    iterations = 30

    def _solve(self, kspace: np.ndarray, maps: np.ndarray, mask: np.ndarray) -> np.ndarray:
        from sigpy.mri.app import SenseRecon

        app = SenseRecon(
            kspace, maps, float(self.strength), weights=mask, max_iter=self.iterations, show_pbar=False
        )
        return np.asarray(app.run())


class L1Wavelet(_Iterative):
    """min_x 1/2 |M F S x - y|^2 + strength |W x|_1 with Daubechies-4 wavelets W, by FISTA.

    K-space comes divided by the standard deviation of the target, so one strength fits every scan.
    """

    candidates = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 2e-2, 4e-2, 8e-2, 0.16, 0.32)
    iterations = 40

    def _solve(self, kspace: np.ndarray, maps: np.ndarray, mask: np.ndarray) -> np.ndarray:
        from sigpy.mri.app import L1WaveletRecon

        app = L1WaveletRecon(
            kspace,
            maps,
            float(self.strength),
            weights=mask,
            max_iter=self.iterations,
            max_power_iter=10,
            show_pbar=False,
        )
        return np.asarray(app.run())
