"""Projection onto the Monarch matrices (Algorithm 1): the nearest one in the Frobenius norm.

M[(l j), (k i)] = sum_r L[j, l, k, r] R[k, j, r, i] says that for fixed (j, k) the O x I sub-block of M has
rank at most r, and that the sub-blocks do not share parameters.  So the nearest Monarch matrix to A has in
place of every sub-block of A its best approximation of rank r, the truncated singular value decomposition.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

import torch
from torch import Tensor

from . import checks
from .multiply import CHUNK_ELEMENTS
from .sizes import Blocks, resolve_blocks, resolve_rank

SQUARING_LIMIT = 128
"""Up to this side, the leading singular vector comes from squaring the Gram matrix; above, from `eigh`."""

FIRST_SQUARINGS = 4
"""So many squarings come before the first power steps; after them most matrices are done."""


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
    if checks.tensor(A, "a matrix to project").ndim < 2:
        raise ValueError(f"a matrix to project has two axes or more; got shape {tuple(A.shape)}.")
    out_features, in_features = A.shape[-2:]
    K, J = resolve_blocks(in_features, out_features, blocks, pad=None)
    rank = resolve_rank(in_features, out_features, (K, J), rank)
    if in_features % K or out_features % J:
        raise ValueError(
            f"a {out_features} x {in_features} matrix is projected with a number of blocks K that divides "
            f"{in_features} and J that divides {out_features}; got blocks=({K}, {J}). "
            "Monarch.from_dense pads sizes that do not divide."
        )
    if not (A.is_floating_point() or A.is_complex()):
        raise TypeError(
            f"projection takes a floating or complex matrix; got dtype={A.dtype}. Convert it first."
        )
    batch, work = A.shape[:-2], A.to(torch.promote_types(A.dtype, torch.float32))
    sub_blocks = work.reshape(*batch, out_features // J, J, K, in_features // K).movedim(-4, -2)
    # A few rows of sub-blocks at a time stay in the cache through all the steps; a small matrix goes in one piece.
    some = max(1, CHUNK_ELEMENTS * J // max(1, sub_blocks.numel()))
    rows = [truncate(rows.contiguous(), rank) for rows in torch.split(sub_blocks, some, -4)]
    left, right = (torch.cat(parts, -4) for parts in zip(*rows, strict=True))
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
    scale = checks.finite(A.abs().amax((-2, -1), keepdim=True), "a matrix to project")
    A = A / scale.masked_fill(scale == 0, 1)
    U = _leading_space(A @ A.mH, kept)
    if kept == 1:  # a row times a matrix and a sum are far quicker for one vector than general products
        V = _normalised(U.mH @ A).mH
        US = (A * V.mT).sum(-1, keepdim=True)
    else:
        V = torch.linalg.qr(A.mH @ U).Q
        AV = A @ V
        rotation = torch.linalg.eigh(AV.mH @ AV).eigenvectors.flip(-1)  # to the singular vectors themselves
        V, US = V @ rotation, AV @ rotation
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
    """The leading eigenvector: powers of the Gram matrix by squaring, then power steps with G^(2^p).

    Let w_1 >= w_2 ... be the eigenvalues of G^(2^p). A step takes the share of the others in a vector down by w_2 / w_1
    or more, and w_2^2 <= ||G^(2^p)||_F^2 - w_1^2, where the Rayleigh quotient of the vector is a lower bound of w_1.
    So it is *known*, not guessed, when w_2 <= w_1 / 2 and the steps have taken that share, squared as the loss is,
    below the rounding error. Where it is not, as with near ties, the squaring goes on: once 2^p exceeds 1 / eps, what
    an eigenvalue (1 - d) times the leading one can cost, d (1 - d)^(2^(p + 1)), is below the rounding error for every
    d, ties included.
    """
    m, eps = gram.shape[-1], torch.finfo(gram.dtype).eps
    squarings, steps = ceil(-log2(eps)), ceil(-log2(eps) / 2)
    leading = gram.new_empty(gram.shape[:-2].numel(), m, 1)
    chunk = max(1, CHUNK_ELEMENTS // m**2)
    for G, found in zip(torch.split(gram.reshape(-1, m, m), chunk), torch.split(leading, chunk), strict=True):
        squared, active = torch.empty_like(G), torch.arange(len(G), device=G.device)
        for p in range(squarings + 1):
            trace = G.diagonal(dim1=-2, dim2=-1).real.sum(-1)[:, None, None]
            G = torch.div(G, trace.masked_fill(trace == 0, 1), out=None if p == 0 else G)
            if p == squarings or (p >= FIRST_SQUARINGS and p % 2 == FIRST_SQUARINGS % 2):
                row = _longest_row(G)
                for _ in range(steps):
                    row = _normalised(torch.bmm(row, G))
                known = (torch.bmm(row, G) * row.conj()).real.sum((-2, -1)).square()
                done = torch.linalg.vector_norm(G, dim=(-2, -1)).square() <= 1.25 * known
                done = done | (known == 0) | (p == squarings)
                found[active[done]] = row[done].mH
                G, active = G[~done], active[~done]
                if not len(G):
                    break
                squared = torch.empty_like(G)
            torch.bmm(G, G, out=squared)
            G, squared = squared, G
    return leading.reshape(*gram.shape[:-1], 1)


def _longest_row(G: Tensor) -> Tensor:
    longest = G.diagonal(dim1=-2, dim2=-1).real.argmax(-1)  # that of v v^H is the square of its entry
    return _normalised(G.gather(-2, longest[:, None, None].expand(-1, 1, G.shape[-1])))


def _normalised(rows: Tensor) -> Tensor:
    return torch.nn.functional.normalize(rows, dim=-1, eps=torch.finfo(rows.dtype).tiny)


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
    (*_, K, J, r, I), O = R.shape, L.shape[-3]
    if L.shape[-4:] != (J, O, K, r) or A.shape[-2:] != (O * J, K * I):
        raise ValueError(
            f"R {tuple(R.shape)} and L {tuple(L.shape)} are not the factors of a matrix {tuple(A.shape)}."
        )
    M = torch.einsum("...jlkr,...kjri->...ljki", L, R).reshape(A.shape)
    error, size = torch.linalg.vector_norm(A - M), torch.linalg.vector_norm(A)
    relative = (error / size).item() if size > 0 else error.item()
    return ProjectionReport(relative, R.numel() + L.numel(), A.numel())
