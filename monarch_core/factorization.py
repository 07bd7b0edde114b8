"""Factorisation of a matrix of the class MM* into its blocks (Algorithm 2).

With block size b, m = n / b and the input and the output both read as (p, i), i < b running fastest,

    M[(p i), (q j)] = sum_s A_i[p, s] D_ij[s] C_j[s, q],   L1 = diag(A_i), R_s[i, j] = D_ij[s], L2 = diag(C_j)

so the block M_ij = A_i D_ij C_j of P M P^T is m x m.  For any pivot row v and column w, the matrices

    F(i, j) = M_iw^-1 M_ij M_vj^-1 M_vw = C_w^-1 (D_iw^-1 D_ij D_vj^-1 D_vw) C_w

commute: their common eigenvectors are C_w^-1, and everything else follows by solving linear equations.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from . import checks
from .diagonalization import simultaneous_eigenvectors
from .linear_operator import LinearOperator, arrow, as_complex_if, complex_factor, dtype_of, keeping_pairs
from .multiply import check_types
from .sizes import composite_size, near_sqrt

SWEEPS = 6


class MMStar(LinearOperator):
    """M = (P^T L1 P) R (P^T L2 P): the three block-diagonal factors of a product M1 M2^*.

    The parameters are L1 (b, m, m), R (m, b, b) and L2 (b, m, m), with a trailing axis of 2 if they are complex.
    """

    L1: nn.Parameter
    R: nn.Parameter
    L2: nn.Parameter

    def __init__(self, L1: Tensor, R: Tensor, L2: Tensor) -> None:
        super().__init__()
        for name, factor in {"L1": L1, "R": R, "L2": L2}.items():
            checks.tensor(factor, f"the factor {name} of MM*", axes=3)
        b, m, _ = L1.shape
        if L1.shape != (b, m, m) or L2.shape != (b, m, m) or R.shape != (m, b, b):
            raise ValueError(
                "the factors of MM* are L1 (b, m, m), R (m, b, b) and L2 (b, m, m); "
                f"got {tuple(L1.shape)}, {tuple(R.shape)} and {tuple(L2.shape)}."
            )
        self.in_shape = self.out_shape = (b * m,)
        dtype = dtype_of(L1, R, L2)
        self.is_complex = dtype.is_complex
        factors = (f.to(dtype).resolve_conj() for f in (L1, R, L2))
        stored = (torch.view_as_real(f) if self.is_complex else f for f in factors)
        self.L1, self.R, self.L2 = (nn.Parameter(f.detach().clone().contiguous()) for f in stored)

    def factors(self) -> tuple[Tensor, Tensor, Tensor]:
        """L1 (b, m, m), R (m, b, b) and L2 (b, m, m), complex tensors if the operator is complex."""
        if self.is_complex:
            return complex_factor(self.L1), complex_factor(self.R), complex_factor(self.L2)
        return self.L1, self.R, self.L2

    @property
    def block_size(self) -> int:
        return self.L1.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        return self.R.dtype.to_complex() if self.is_complex else self.R.dtype

    def flops(self, batch: int = 1) -> int:
        return (8 if self.is_complex else 2) * batch * sum(f.numel() for f in self.factors())

    def multiply(self, x: Tensor) -> Tensor:
        return self._three(x, *self.factors())

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        L1, R, L2 = self.factors()
        return self._three(y, L2.mH, R.mH, L1.mH)

    def _three(self, x: Tensor, left: Tensor, middle: Tensor, right: Tensor) -> Tensor:
        complex = self.is_complex or x.is_complex()
        left, middle, right, x = (as_complex_if(t, complex) for t in (left, middle, right, x))
        check_types(x, middle)
        m, b = middle.shape[:2]
        x = x.reshape(*x.shape[:-1], m, b)
        x = torch.einsum("jsq,...qj->...sj", right, x)
        x = torch.einsum("sij,...sj->...si", middle, x)
        return torch.einsum("ips,...si->...pi", left, x).flatten(-2)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> MMStar:
        super()._apply(keeping_pairs(fn) if self.is_complex else fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def extra_repr(self) -> str:
        structure = f"block_size={self.block_size}, {self.dtype}"
        return f"{arrow(self)}, {structure}, {self.num_parameters:,} parameters"


@torch.no_grad()
def factorize(M: Tensor, block_size: int | None = None, tolerance: float | None = None) -> MMStar:
    """Find L1, R and L2 of a square matrix M in MM*, real or complex, for a block size that divides its size.

    It needs every m x m block of P M P^T invertible: L1 and L2 invertible and no zero entry in the blocks of R.
    A real M gets real factors if it has any.  The work is done in double precision.  The relative residual is
    checked against `tolerance`, by default the square root of the precision of M.

    >>> from monarch_core import mm_star
    >>> M = mm_star(36, block_size=4, dtype=torch.float64).to_dense().detach()
    >>> bool(torch.dist(factorize(M, block_size=4).to_dense(), M) < 1e-9 * M.norm())
    True
    """
    if checks.tensor(M, "the argument of factorize", axes=2).shape[0] != M.shape[1]:
        raise ValueError(f"factorize takes one square matrix; got a tensor of shape {tuple(M.shape)}.")
    n = len(M)
    checks.finite(M, "a matrix to factorise")
    if not (M.is_floating_point() or M.is_complex()):
        raise TypeError(f"a matrix to factorise is floating or complex; got dtype={M.dtype}.")
    b = (
        near_sqrt(composite_size(n, None))[1]
        if block_size is None
        else checks.whole(block_size, "block_size", 1)
    )
    if n % b:
        raise ValueError(f"the block size of a factorisation of size {n} divides {n}; got {b}.")
    tolerance = torch.finfo(M.dtype).eps ** 0.5 if tolerance is None else tolerance
    work = M.to(torch.complex128 if M.is_complex() else torch.float64)
    blocks = work.reshape(n // b, b, n // b, b).permute(1, 3, 0, 2)
    A, D, C = _refined(blocks, *_algebraic(blocks, _checked_inverses(blocks, work)))
    residual = _residual(blocks, A, D, C)
    if not residual <= tolerance:
        raise ValueError(
            f"the matrix is not in the class MM* with block size {b}: the best factors found leave a relative "
            f"residual of {residual:.1e} (tolerance {tolerance:.0e}). Try another block size, or approximate it "
            "with Monarch.from_dense."
        )
    dtype = M.dtype.to_complex() if A.is_complex() else M.dtype
    return MMStar(*(factor.to(dtype) for factor in (A, D.permute(2, 0, 1), C)))


def _checked_inverses(blocks: Tensor, M: Tensor) -> Tensor:
    inverses: Tensor
    inverses, info = torch.linalg.inv_ex(blocks)
    condition = torch.linalg.matrix_norm(blocks, 1) * torch.linalg.matrix_norm(inverses, 1)
    singular = (info != 0) | ~(condition < 0.01 / torch.finfo(M.dtype).eps)
    if not singular.any():
        return inverses
    if torch.linalg.matrix_rank(M) < len(M):
        raise ValueError("the factorisation needs an invertible matrix; this one is singular.")
    i, j = singular.nonzero()[0].tolist()
    raise ValueError(
        f"block ({i}, {j}) of P M P^T is singular although the matrix is not: with this block size it is no "
        "product L1 R L2 with invertible L1 and L2 and no zero entry in the blocks of R. Try another block size."
    )


def _algebraic(blocks: Tensor, inverses: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A (b, m, m), D (b, b, m), C (b, m, m) by Algorithm 2; the best conditioned row and column are pivots."""
    condition = torch.linalg.matrix_norm(blocks) * torch.linalg.matrix_norm(inverses)
    v, w = int(condition.amax(1).argmin()), int(condition.amax(0).argmin())
    F = inverses[:, None, w] @ blocks @ inverses[v] @ blocks[v, w]
    V = simultaneous_eigenvectors(F.flatten(0, 1))
    blocks = blocks.to(V.dtype)
    A = blocks[:, w] @ V
    C = torch.linalg.solve(A[v], blocks[v])
    return A, _diagonals(blocks, A, C), C


def _diagonals(blocks: Tensor, A: Tensor, C: Tensor) -> Tensor:
    inner: Tensor = torch.linalg.solve(C.mT, torch.linalg.solve(A[:, None], blocks).mT)
    return inner.diagonal(dim1=-2, dim2=-1)


def _refined(blocks: Tensor, A: Tensor, D: Tensor, C: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Least squares for A, C and D in turn, each over all blocks at once, as long as the residual falls.

    The columns of A and the rows of C are kept at norm 1; R carries the sizes.
    """
    blocks = blocks.to(A.dtype)
    best, kept = torch.inf, (A, D, C)
    for _ in range(SWEEPS):
        D, A, C = D * _norms(A, -2)[:, None] * _norms(C, -1), A / _norms(A, -2, True), C / _norms(C, -1, True)
        residual = _residual(blocks, A, D, C)
        if not residual < 0.9 * best:
            break
        best, kept = residual, (A, D, C)
        # M_i: = A_i (D_ij C_j)_j for every row of blocks, then M_:j = (A_i D_ij)_i C_j for every column.
        A = _right_division(blocks.transpose(1, 2).flatten(2), (D[..., None] * C).transpose(1, 2).flatten(2))
        AD = (A[:, None] * D[:, :, None]).transpose(0, 1).flatten(1, 2)
        C = torch.linalg.lstsq(AD, blocks.transpose(0, 1).flatten(1, 2)).solution
        D = _diagonals(blocks, A, C)
    return kept


def _right_division(left: Tensor, right: Tensor) -> Tensor:
    """X with X right = left in the least-squares sense."""
    solution: Tensor = torch.linalg.lstsq(right.mT, left.mT).solution
    return solution.mT


def _norms(t: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(t, dim=dim, keepdim=keepdim)
    return norms


def _residual(blocks: Tensor, A: Tensor, D: Tensor, C: Tensor) -> float:
    product = (A[:, None] * D[:, :, None]) @ C
    return float(torch.linalg.vector_norm(product - blocks) / torch.linalg.vector_norm(blocks))
