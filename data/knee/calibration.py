"""Coil sensitivity maps from the calibration region: ESPIRiT for many slices at once.

Uecker et al., Magn Reson Med 71:990, 2014. All small patches of the calibration k-space lie in a subspace;
the projection onto it, averaged over every patch a sample belongs to, is a convolution with a matrix of
kernels, hence in image space one small Hermitian matrix per pixel,

    H(r)_{cd} = 1/K  sum_{a, b} P_{(c, a), (d, b)} exp(-2 pi i (b - a) r / n),

P the projection, a and b offsets in a patch of K samples. Sensitivities are the eigenvectors of H(r) with
eigenvalue 1. Maps are smooth, so H is evaluated on a grid of at most 64 x 48 points and its eigenvectors
interpolated.
"""

from typing import Final

import torch
from torch import Tensor

COARSEST: Final = (64, 48)
KERNEL, THRESHOLD = 5, 0.03
"""Side of a patch; singular values kept, relative to the largest."""


class MapEstimator:
    """Estimates the maps of consecutive slices; their phase is carried on from slice to slice.

    An eigenvector has no phase of its own. It is fixed by making the *virtual coil* real: the combination of
    coils that carries most of the slice's energy. Maps have unit sum of squares everywhere.
    """

    def __init__(self, plane: tuple[int, int]) -> None:
        self.plane = plane
        self._coarse = tuple(min(n, most) for n, most in zip(plane, COARSEST, strict=True))
        self._reference: Tensor | None = None

    def __call__(self, calibration: Tensor) -> Tensor:
        """Calibration k-space (slices, coils, ky, kz), centred, to maps (slices, coils, y, z)."""
        kernel = tuple(min(KERNEL, 1 + n // 2) for n in calibration.shape[-2:])
        kernels = _projection_kernels(calibration, kernel)
        matrices = _on_grid(kernels, self._coarse)
        vectors = torch.linalg.eigh(matrices).eigenvectors[..., -1]
        virtual = self._virtual_coils(calibration)
        projection = torch.einsum("sc,syzc->syz", virtual.conj(), vectors)
        vectors = vectors * (projection.conj() / projection.abs().clamp_min(1e-12)).unsqueeze(-1)
        maps = vectors.movedim(-1, 1)
        for axis, (fine, coarse) in enumerate(zip(self.plane, self._coarse, strict=True)):
            if fine != coarse:
                weights = _cubic_weights(fine, coarse).to(maps.dtype)
                maps = torch.einsum(("nm,scmz->scnz", "nm,scym->scyn")[axis], weights, maps)
        return maps / maps.abs().square().sum(1, keepdim=True).sqrt().clamp_min(1e-12)

    def _virtual_coils(self, calibration: Tensor) -> Tensor:
        flat = calibration.flatten(2)
        covariance = flat @ flat.mH
        leading = torch.linalg.eigh(covariance).eigenvectors[..., -1]
        for i, vector in enumerate(leading):
            reference = self._reference if self._reference is not None else torch.ones_like(vector)
            overlap = torch.vdot(vector, reference)
            self._reference = leading[i] = vector * (overlap / overlap.abs().clamp_min(1e-12))
        return leading


def _projection_kernels(calibration: Tensor, kernel: tuple[int, ...]) -> Tensor:
    """Convolution kernels (slices, coils, coils, lags, lags) of the averaged projection; lag b - a."""
    slices, coils = calibration.shape[:2]
    k1, k2 = kernel
    patches = calibration.unfold(-2, k1, 1).unfold(-2, k2, 1)
    rows = patches.movedim(1, 3).reshape(slices, -1, coils * k1 * k2)
    gram = rows.transpose(-1, -2) @ rows.conj()
    energy, vectors = torch.linalg.eigh(gram)
    kept = vectors * (energy > THRESHOLD**2 * energy[:, -1:]).unsqueeze(1)
    projection = (kept @ kept.mH).reshape(slices, coils, k1, k2, coils, k1, k2)
    kernels = calibration.new_zeros(slices, coils, coils, 2 * k1 - 1, 2 * k2 - 1)
    for a1 in range(k1):
        for a2 in range(k2):
            lags = (..., slice(k1 - 1 - a1, 2 * k1 - 1 - a1), slice(k2 - 1 - a2, 2 * k2 - 1 - a2))
            kernels[lags] += projection[:, :, a1, a2]
    return kernels / (k1 * k2)


def _on_grid(kernels: Tensor, grid: tuple[int, ...]) -> Tensor:
    """The matrices H(r) (slices, y, z, coils, coils) on a centred grid of points."""
    waves = []
    for points, lags in zip(grid, kernels.shape[-2:], strict=True):
        r = (torch.arange(points, dtype=torch.float64) - points // 2) / points
        lag = torch.arange(lags, dtype=torch.float64) - lags // 2
        waves.append(torch.exp(-2j * torch.pi * r[:, None] * lag).to(kernels.dtype))
    return torch.einsum("ya,scdab,zb->syzcd", waves[0], kernels, waves[1])


def _cubic_weights(fine: int, coarse: int) -> Tensor:
    """Matrix (fine, coarse) of periodic cubic interpolation (Keys), centre on centre."""
    position = (torch.arange(fine, dtype=torch.float64) - fine // 2) * coarse / fine + coarse // 2
    distance = (position[:, None] - torch.arange(coarse)).abs()
    distance = torch.minimum(distance, coarse - distance)
    near = 1 - 2.5 * distance**2 + 1.5 * distance**3
    far = 2 - 4 * distance + 2.5 * distance**2 - 0.5 * distance**3
    return torch.where(distance < 1, near, torch.where(distance < 2, far, torch.zeros(())))
