"""Iterative SENSE."""

import numpy as np

from mri.models.parts.iterative import Iterative


class CgSense(Iterative):
    """min_x |M F S x - y|^2 + strength |x|^2, by conjugate gradients."""

    candidates = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
    iterations = 30

    def solve(self, kspace: np.ndarray, maps: np.ndarray, mask: np.ndarray) -> np.ndarray:
        from sigpy.mri.app import SenseRecon

        app = SenseRecon(
            kspace, maps, float(self.strength), weights=mask, max_iter=self.iterations, show_pbar=False
        )
        return np.asarray(app.run())
