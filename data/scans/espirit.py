"""Coil sensitivity maps from the calibration region: ESPIRiT for many slices at once.

Uecker et al., Magn Reson Med 71:990, 2014. All small patches of the calibration k-space lie in a subspace;
the projection onto it, averaged over every patch a sample belongs to, is a convolution with a matrix of
kernels, hence in image space one small Hermitian matrix per pixel,

    H(r)_{cd} = 1/K  sum_{a, b} P_{(c, a), (d, b)} exp(-2 pi i (b - a) r / n),

P the projection, a and b offsets in a patch of K samples. Sensitivities are the eigenvectors of H(r) with
eigenvalue 1; where no eigenvalue is near 1 there is no signal. Maps are smooth, so H is evaluated on a coarse grid
and its eigenvectors interpolated.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

Grid = tuple[int, int]


@dataclass(frozen=True)
class Espirit:
    """The numbers of the method; sigpy's and BART's."""

    region: Grid = (24, 24)
    """Most of the calibration k-space that is used, (ky, kz) samples around its centre."""
    kernel: int = 6
    """Side of a patch."""
    threshold: float = 0.02
    """Singular values of the calibration matrix that are kept, relative to the largest."""
    crop: float = 0.95
    """Eigenvalue below which a pixel has no signal, and maps of 0."""
    coarsest: Grid = (64, 64)
    """Points on which eigenvectors are computed at most."""


class MapEstimator:
    """Estimates the maps of consecutive slices; their phase is carried on from slice to slice.

    An eigenvector has no phase of its own. It is fixed by making the *virtual coil* real: the combination of
    coils that carries most of the slice's energy. Where there is signal the sum of squares of the maps is 1.

    >>> estimate = MapEstimator((32, 24))
    >>> estimate(torch.randn(2, 3, 12, 12, dtype=torch.complex64)).shape
    torch.Size([2, 3, 32, 24])
    """

    def __init__(self, plane: Grid, method: Espirit | None = None) -> None:
        self.plane, self.method = plane, method or Espirit()
        self._coarse = tuple(min(n, most) for n, most in zip(plane, self.method.coarsest, strict=True))
        self._reference: Tensor | None = None

    def __call__(self, calibration: Tensor) -> Tensor:
        """Calibration k-space (slices, coils, ky, kz), centred, to maps (slices, coils, y, z)."""
        kernel = tuple(min(self.method.kernel, 1 + n // 2) for n in calibration.shape[-2:])
        kernels = _projection_kernels(calibration, kernel, self.method.threshold)
        values, vectors = torch.linalg.eigh(_on_grid(kernels, self._coarse))
        vectors = vectors[..., -1]
        virtual = self._virtual_coils(calibration)
        projection = torch.einsum("sc,syzc->syz", virtual.conj(), vectors)
        vectors = vectors * (projection.conj() / projection.abs().clamp_min(1e-12)).unsqueeze(-1)
        maps = self._on_plane(vectors.movedim(-1, 1))
        maps = maps / maps.abs().square().sum(1, keepdim=True).sqrt().clamp_min(1e-12)
        if self.method.crop <= 0:
            return maps
        return maps * (self._on_plane(values[..., -1].unsqueeze(1)) > self.method.crop)

    def _on_plane(self, coarse: Tensor) -> Tensor:
        for axis, fine in enumerate(self.plane):
            if fine != self._coarse[axis]:
                weights = _cubic_weights(fine, self._coarse[axis]).to(coarse.dtype)
                coarse = torch.einsum(("nm,scmz->scnz", "nm,scym->scyn")[axis], weights, coarse)
        return coarse

    def _virtual_coils(self, calibration: Tensor) -> Tensor:
        flat = calibration.flatten(2)
        covariance = flat @ flat.mH
        leading = torch.linalg.eigh(covariance).eigenvectors[..., -1]
        for i, vector in enumerate(leading):
            reference = self._reference if self._reference is not None else torch.ones_like(vector)
            overlap = torch.vdot(vector, reference)
            if overlap.abs() > 1e-12:  # an empty slice has no phase to carry on
                self._reference = leading[i] = vector * (overlap / overlap.abs())
        return leading


def _projection_kernels(calibration: Tensor, kernel: tuple[int, ...], threshold: float) -> Tensor:
    """Convolution kernels (slices, coils, coils, lags, lags) of the averaged projection; lag b - a."""
    slices, coils = calibration.shape[:2]
    k1, k2 = kernel
    patches = calibration.unfold(-2, k1, 1).unfold(-2, k2, 1)
    rows = patches.movedim(1, 3).reshape(slices, -1, coils * k1 * k2)
    projection = _row_space(rows, threshold).reshape(slices, coils, k1, k2, coils, k1, k2)
    kernels = calibration.new_zeros(slices, coils, coils, 2 * k1 - 1, 2 * k2 - 1)
    for a1 in range(k1):
        for a2 in range(k2):
            lags = (..., slice(k1 - 1 - a1, 2 * k1 - 1 - a1), slice(k2 - 1 - a2, 2 * k2 - 1 - a2))
            kernels[lags] += projection[:, :, a1, a2]
    return kernels / (k1 * k2)


def _row_space(rows: Tensor, threshold: float) -> Tensor:
    """The projection onto the row space of matrices (slices, rows, columns), without their small singular values."""
    wide = 3 * rows.shape[-2] < rows.shape[-1]  # many coils: the other Gram matrix is far smaller
    gram = rows.conj() @ rows.transpose(-1, -2) if wide else rows.transpose(-1, -2) @ rows.conj()
    energy, vectors = torch.linalg.eigh(gram)
    kept = vectors * (energy > threshold**2 * energy[:, -1:]).unsqueeze(1)
    if wide:
        kept = rows.transpose(-1, -2) @ kept / energy.clamp_min(1e-30).sqrt().unsqueeze(1)
    return kept @ kept.mH


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
