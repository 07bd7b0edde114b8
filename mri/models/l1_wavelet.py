"""Compressed sensing."""

import numpy as np

from mri.models.parts.iterative import Iterative


class L1Wavelet(Iterative):
    """min_x 1/2 |M F S x - y|^2 + strength |W x|_1 with Daubechies-4 wavelets W, by FISTA.

    K-space comes divided by the standard deviation of the target, so one strength fits every scan.
    """

    candidates = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 2e-2, 4e-2, 8e-2, 0.16, 0.32)
    iterations = 40

    def solve(self, kspace: np.ndarray, maps: np.ndarray, mask: np.ndarray) -> np.ndarray:
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
