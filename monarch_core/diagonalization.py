"""Simultaneous diagonalisation of a commuting family: one basis of eigenvectors for all of its matrices."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

TRIALS = 8
"""Random combinations tried at most; the one whose eigenvalues lie furthest apart is taken."""
SAME = 1e-7
"""Eigenvalues nearer than this, relative to their spread, count as one eigenvalue."""


class _Spectrum(NamedTuple):
    combination: Tensor
    values: Tensor
    vectors: Tensor
    clusters: list[Tensor]
    gap: float


def simultaneous_eigenvectors(family: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Return V (m, m), columns of norm 1, such that V^-1 F_t V is diagonal for every F_t of a family (t, m, m).

    A random combination of commuting diagonalisable matrices has the common eigenvectors as its own; almost
    surely two of its eigenvalues agree only if they do so in *every* F_t.  Any basis of such a shared eigenspace
    will do, and an orthonormal one is taken; a space that a chance coincidence made too large is split again, by
    another combination restricted to it.  The result is real if the family is, with real eigenvalues.

    >>> basis = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    >>> family = torch.stack([basis @ torch.diag(d) @ basis.inverse() for d in torch.eye(2).double()])
    >>> V = simultaneous_eigenvectors(family)
    >>> bool((torch.linalg.solve(V, family @ V) - torch.diag_embed(torch.eye(2))).abs().sum() < 2.1)
    True
    """
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    m = family.shape[-1]
    identity = torch.eye(m, dtype=family.dtype, device=family.device)
    means = family.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    family = family - means * identity
    sizes = torch.linalg.matrix_norm(family)
    # A family of multiples of the identity has nothing left to tell its eigenvectors apart.
    informative = sizes > SAME * (sizes + means.abs()[:, 0, 0])
    if m == 1 or not informative.any():
        return identity
    family = family[informative] / sizes[informative, None, None]
    spectra: list[_Spectrum] = []
    while len(spectra) < TRIALS and not (spectra and spectra[-1].gap > 0.5 / m**2):
        spectra.append(_spectrum_of_random_combination(family, generator))
    spectrum = max(spectra, key=lambda s: (len(s.clusters), s.gap))
    if len(spectrum.clusters) == 1:
        return identity
    columns = []
    for cluster in spectrum.clusters:
        if len(cluster) == 1:
            columns.append(spectrum.vectors[:, cluster])
            continue
        # Eigenvectors of a repeated eigenvalue come out almost parallel; its null space comes out orthonormal.
        shifted = spectrum.combination - spectrum.values[cluster].mean() * identity
        space = torch.linalg.svd(shifted).Vh[-len(cluster) :].mH
        inner = simultaneous_eigenvectors(space.mH @ family.to(space.dtype) @ space, generator)
        columns.append(space.to(inner.dtype) @ inner)
    dtype = max((c.dtype for c in columns), key=lambda d: d.is_complex)
    V = torch.cat([c.to(dtype) for c in columns], dim=1)
    V /= torch.linalg.vector_norm(V, dim=0)
    return V


def _spectrum_of_random_combination(family: Tensor, generator: torch.Generator) -> _Spectrum:
    real = family.real.dtype
    weights = torch.randn(len(family), dtype=real, generator=generator).to(family)
    combination = torch.einsum("t,tij->ij", weights, family)
    values, vectors = torch.linalg.eig(combination)
    scale = float(values.abs().max())
    if not family.is_complex() and float(values.imag.abs().max()) <= SAME * scale:
        values, vectors = values.real, vectors.real
        vectors = vectors / torch.linalg.vector_norm(vectors, dim=0).clamp_min(torch.finfo(real).tiny)
    distance = (values[:, None] - values[None, :]).abs()
    same = distance <= SAME * scale
    for _ in range(len(values).bit_length()):  # chains of near neighbours are one cluster
        same = (same.to(real) @ same.to(real)) > 0
    firsts = same.to(torch.int8).argmax(-1)
    clusters = [(firsts == first).nonzero().flatten() for first in firsts.unique()]
    apart = distance.masked_fill(same, torch.inf)
    gap = float(apart.min()) / scale if len(clusters) == len(values) else 0.0
    return _Spectrum(combination.to(values.dtype), values, vectors, clusters, gap)
