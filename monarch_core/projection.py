"""Projection onto the Monarch matrices (Algorithm 1): the nearest one in the Frobenius norm.

M[(l j), (k i)] = sum_r L[j, l, k, r] R[k, j, r, i] says that for fixed (j, k) the O x I sub-block of M has
rank at most r, and that the sub-blocks do not share parameters.  So the nearest Monarch matrix to A has in
place of every sub-block of A its best approximation of rank r, the truncated singular value decomposition.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import torch
from torch import Tensor

from .multiply import CHUNK_ELEMENTS
from .sizes import Blocks, resolve_blocks, resolve_rank

SQUARING_LIMIT = 128
"""Up to this side, the leading singular vector comes from squaring the Gram matrix; above, from `eigh`."""


@torch.no_grad()
def project(A: Tensor, blocks: Blocks | None = None, rank: int | None = None) -> tuple[Tensor, Tensor]:
    """Return R (..., K, J, r, I) and L (..., J, O, K, r) of the Monarch matrix nearest to A (..., out, in).

        minimise ||A - M||_F,   M[(l j), (k i)] = sum_r L[j, l, k, r] R[k, j, r, i]

    A is real or complex, of any shape that the block counts divide, with any leading batch axes.  The two
    factors of a sub-block share its singular values evenly: sqrt(S) each.

    >>> A = torch.kron(torch.ones(2, 2), torch.arange(4.0).reshape(2, 2))
    >>> R, L = project(A, blocks=2)
    >>> bool(projection_report(A, R, L).relative_error < 1e-6)
    True
    """
    out_features, in_features = A.shape[-2:]
    K, J = resolve_blocks(in_features, out_features, blocks)
    rank = resolve_rank(in_features, out_features, (K, J), rank)
    if in_features % K or out_features % J:
        raise ValueError(
            f"a {out_features} x {in_features} matrix is projected with a number of blocks K that divides "
            f"{in_features} and J that divides {out_features}; got blocks=({K}, {J}). "
            "Monarch.from_dense pads sizes that do not divide."
        )
    if not torch.isfinite(A).all():
        raise ValueError(
            f"a matrix with entries that are not finite has no nearest Monarch matrix; this {out_features} x "
            f"{in_features} one has {int((~torch.isfinite(A)).sum())} NaN or infinite entries."
        )
    if not (A.is_floating_point() or A.is_complex()):
        raise TypeError(
            f"projection takes a floating or complex matrix; got dtype={A.dtype}. Convert it first."
        )
    batch, work = A.shape[:-2], A.to(torch.promote_types(A.dtype, torch.float32))
    sub_blocks = work.reshape(*batch, out_features // J, J, K, in_features // K).movedim(-4, -2)
    left, right = truncate(sub_blocks, rank)
    L = left.movedim(-3, -2)  # (..., J, K, O, r) -> (..., J, O, K, r)
    R = right.transpose(-4, -3)  # (..., J, K, r, I) -> (..., K, J, r, I)
    return R.to(A.dtype).contiguous(), L.to(A.dtype).contiguous()


def truncate(A: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Best approximation of rank r of matrices A (..., m, n): U sqrt(S) (..., m, r), sqrt(S) V^H (..., r, n).

    Only the leading singular vectors are computed.  The Gram matrix of the shorter side gives the leading left
    space U to the square root of the working precision; one step of subspace iteration, V = orth(A^H U), takes
    it to full precision.  A V V^H is then optimal, and exact where A has rank r.
    """
    if A.shape[-2] > A.shape[-1]:
        right, left = truncate(A.mT, rank)
        return left.mT, right.mT
    kept = min(rank, A.shape[-2])
    scale = A.abs().amax((-2, -1), keepdim=True)
    A = A / scale.masked_fill(scale == 0, 1)
    V = A.mH @ _leading_space(A @ A.mH, kept)
    if kept == 1:
        V = torch.nn.functional.normalize(V, dim=-2, eps=torch.finfo(A.dtype).tiny)
    else:
        V = torch.linalg.qr(V).Q
        AV = A @ V
        V = V @ torch.linalg.eigh(AV.mH @ AV).eigenvectors.flip(-1)  # the singular vectors themselves
    US = A @ V
    root = (torch.linalg.vector_norm(US, dim=-2, keepdim=True) * scale).sqrt()
    left = US * (scale / root.masked_fill(root == 0, 1))
    right = root.mT * V.mH
    extra = rank - kept  # a rank above the size of the block buys nothing: zeros
    return torch.nn.functional.pad(left, (0, extra)), torch.nn.functional.pad(right, (0, 0, 0, extra))


def _leading_space(gram: Tensor, rank: int) -> Tensor:
    """The r leading eigenvectors (..., m, r) of positive semidefinite matrices (..., m, m)."""
    if rank == 1 and gram.shape[-1] <= SQUARING_LIMIT:
        return _leading_vector(gram)
    vectors: Tensor = torch.linalg.eigh(gram).eigenvectors
    return vectors[..., -rank:]


def _leading_vector(gram: Tensor) -> Tensor:
    """The leading eigenvector by repeated squaring: G^(2^p) / trace tends to its projector.

    After p squarings an eigenvector whose eigenvalue is (1 - d) times the leading one has weight (1 - d)^(2^p).
    What that costs the projection, d (1 - d)^(2^(p + 1)) of the leading energy, is below the rounding error for
    *every* gap d once 2^p exceeds 1 / eps, ties included.  It is quadratic in the weight, so a matrix is done when
    the others' weights sum to less than sqrt(eps): after about ten squarings, most of the time.
    """
    m = gram.shape[-1]
    eps = torch.finfo(gram.dtype).eps
    leading = []
    for G in torch.split(gram.reshape(-1, m, m), max(1, CHUNK_ELEMENTS // m**2)):
        G = G / _trace(G).clamp_min(torch.finfo(G.dtype).tiny)
        squared = torch.empty_like(G)
        for _ in range(round(-log2(eps))):
            torch.bmm(G, G, out=squared)
            purity = _trace(squared)  # the sum of the squared weights: 1 for a projector, 0 for a zero block
            G, squared = squared.div_(purity.masked_fill(purity == 0, 1)), G
            if (purity * (1 - purity) < 0.1 * eps**0.5).all():
                break
        longest = torch.linalg.vector_norm(G, dim=-2).argmax(-1)
        leading.append(G.gather(-1, longest[:, None, None].expand(-1, m, 1)))
    return torch.cat(leading).reshape(*gram.shape[:-1], 1)


def _trace(G: Tensor) -> Tensor:
    return G.diagonal(dim1=-2, dim2=-1).real.sum(-1)[:, None, None]


@dataclass(frozen=True)
class ProjectionReport:
    """How much of a matrix its projection keeps, and at what size."""

    relative_error: float
    """||A - M||_F / ||A||_F, over the whole batch."""
    parameters: int
    dense_parameters: int

    def __str__(self) -> str:
        share = self.parameters / self.dense_parameters
        return f"relative error {self.relative_error:.3g} with {share:.1%} of the dense parameters"


@torch.no_grad()
def projection_report(A: Tensor, R: Tensor, L: Tensor) -> ProjectionReport:
    """Compare a matrix (..., out, in) with its projection: R (..., K, J, r, I) and L (..., J, O, K, r)."""
    M = torch.einsum("...jlkr,...kjri->...ljki", L, R).reshape(A.shape)
    error, size = torch.linalg.vector_norm(A - M), torch.linalg.vector_norm(A)
    relative = (error / size).item() if size > 0 else error.item()
    return ProjectionReport(relative, R.numel() + L.numel(), A.numel())
