"""MM* factorisation: it gives M back, for any block size, real and complex, repeated eigenvalues included."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from monarch_core import factorize, mm_star
from monarch_core.diagonalization import simultaneous_eigenvectors
from monarch_core.factorization import MMStar

R64, C128 = torch.float64, torch.complex128


def orthogonal(*shape: int, dtype: torch.dtype = R64) -> Tensor:
    return torch.linalg.qr(torch.randn(shape, dtype=dtype)).Q


def without_zeros(*shape: int, dtype: torch.dtype = R64) -> Tensor:
    R = torch.randn(shape, dtype=dtype)
    return R + 0.3 * R / R.abs()


def well_conditioned(n: int, b: int, dtype: torch.dtype = R64) -> Tensor:
    """A random matrix of MM* whose blocks L1 and L2 are orthogonal (unitary)."""
    m = n // b
    A, C = orthogonal(b, m, m, dtype=dtype), orthogonal(b, m, m, dtype=dtype)
    return MMStar(A, without_zeros(m, b, b, dtype=dtype), C).to_dense().detach()


def residual(M: Tensor, b: int) -> float:
    return (torch.dist(factorize(M, b).to_dense(), M) / M.norm()).item()


def test_the_three_factors_are_those_of_the_paper():
    b, m = 3, 4
    n = b * m
    L1, R, L2 = torch.randn(b, m, m).double(), torch.randn(m, b, b).double(), torch.randn(b, m, m).double()
    # P_(b, n) sends entry i = i1 b + i0 to i0 (n / b) + i1.
    P = torch.zeros(n, n, dtype=R64)
    for i in range(n):
        P[(i % b) * m + i // b, i] = 1
    block_diagonal = [torch.block_diag(*factor) for factor in (L1, R, L2)]
    expected = P.T @ block_diagonal[0] @ P @ block_diagonal[1] @ P.T @ block_diagonal[2] @ P
    torch.testing.assert_close(MMStar(L1, R, L2).to_dense(), expected)


@pytest.mark.parametrize("dtype", [R64, C128])
def test_the_operator_has_its_adjoint(dtype):
    operator = factorize(well_conditioned(12, 3, dtype), 3)
    x, y = torch.randn(2, 12, dtype=dtype), torch.randn(2, 12, dtype=dtype)
    torch.testing.assert_close((operator(x).conj() * y).sum(), (x.conj() * operator.adjoint(y)).sum())
    torch.testing.assert_close(operator.H.to_dense(), operator.to_dense().mH)
    assert operator.num_parameters == (2 if dtype.is_complex else 1) * (2 * 12 * 4 + 12 * 3)


@settings(max_examples=30, deadline=None)
@given(b=st.integers(1, 8), m=st.integers(1, 8), real=st.booleans())
def test_every_block_size_gives_the_matrix_back(b, m, real):
    torch.manual_seed(b * 8 + m)
    M = well_conditioned(b * m, b, R64 if real else C128)
    operator = factorize(M, b)
    assert operator.dtype == M.dtype
    assert residual(M, b) < 1e-11


@pytest.mark.parametrize("dtype", [R64, C128])
@pytest.mark.parametrize("b", [2, 4, 6, 9, 18])
def test_products_of_random_monarch_matrices(dtype, b):
    M = mm_star(36, b, dtype=dtype).to_dense().detach()
    assert residual(M, b) < 1e-8


@pytest.mark.parametrize(
    ("n", "b", "dtype"), [(256, 16, R64), (256, 4, R64), (256, 64, C128), (1024, 128, R64)]
)
def test_large_matrices(n, b, dtype):
    assert residual(well_conditioned(n, b, dtype), b) < 1e-11


@pytest.mark.parametrize("dtype", [R64, C128])
@pytest.mark.parametrize("which", [[0, 0, 0, 1, 1, 2, 3, 4], [0] * 8, [0, 1, 0, 1, 0, 1, 0, 1]])
def test_repeated_eigenvalues_are_kept_apart_from_each_other(dtype, which):
    """Blocks of R that agree make eigenvalues that agree in every F(i, j)."""
    b, m = 4, 8
    A, C = orthogonal(b, m, m, dtype=dtype), orthogonal(b, m, m, dtype=dtype)
    R = without_zeros(m, b, b, dtype=dtype)[torch.tensor(which)]
    M = MMStar(A, R, C).to_dense().detach()
    operator = factorize(M, b)
    assert operator.dtype == dtype
    assert residual(M, b) < 1e-11
    assert torch.linalg.cond(operator.factors()[0]).max() < 1e3


def test_eigenvalues_that_repeat_in_each_matrix_but_not_in_all():
    """No single F(i, j) has the eigenvectors; only together do they."""
    b, m = 3, 4
    R = torch.ones(m, b, b, dtype=R64)
    R[0, 1, 1], R[1, 1, 2], R[2, 2, 1] = 2, 3, 5
    M = MMStar(orthogonal(b, m, m), R, orthogonal(b, m, m)).to_dense().detach()
    assert residual(M, b) < 1e-11


def test_a_real_matrix_gets_complex_factors_only_if_it_needs_them():
    b, m = 3, 4
    pair = torch.tensor([[1, 1], [1j, -1j]], dtype=C128) / 2**0.5
    turn = torch.block_diag(pair, pair)
    R = without_zeros(2, b, b, dtype=C128)
    R = torch.stack([R[0], R[0].conj(), R[1], R[1].conj()])
    A, C = orthogonal(b, m, m).to(C128) @ turn, turn.mH @ orthogonal(b, m, m).to(C128)
    M = MMStar(A, R, C).to_dense().detach()
    assert M.imag.abs().max() < 1e-14
    operator = factorize(M.real, b)
    assert operator.dtype == C128
    assert torch.dist(operator.to_dense(), M) < 1e-11 * M.norm()
    assert factorize(well_conditioned(12, b), b).dtype == R64


def test_the_factorisation_survives_noise_of_its_tolerance():
    M = well_conditioned(64, 8)
    noisy = M + 1e-9 * M.norm() / 64 * torch.randn_like(M)
    operator = factorize(noisy, 8)
    assert torch.dist(operator.to_dense(), noisy) < 2e-9 * M.norm()


def test_single_precision():
    M = well_conditioned(64, 8).float()
    operator = factorize(M, 8)
    assert operator.dtype == torch.float32
    assert torch.dist(operator.to_dense(), M) < 1e-5 * M.norm()


def test_the_factors_train():
    operator = factorize(well_conditioned(12, 3), 3)
    operator(torch.randn(5, 12, dtype=R64)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in operator.parameters())


def test_a_singular_matrix_is_refused():
    A = orthogonal(4, 4, 4)
    A[1, :, 2] = A[1, :, 0]
    M = MMStar(A, without_zeros(4, 4, 4), orthogonal(4, 4, 4)).to_dense().detach()
    with pytest.raises(ValueError, match="needs an invertible matrix"):
        factorize(M, 4)


def test_a_singular_matrix_with_invertible_blocks_will_do():
    """The remark after the paper's proof: only the blocks of P M P^T have to be invertible."""
    R = without_zeros(4, 4, 4)
    R[1, 2] = R[1, 0]
    M = MMStar(orthogonal(4, 4, 4), R, orthogonal(4, 4, 4)).to_dense().detach()
    assert torch.linalg.matrix_rank(M) == 15
    assert residual(M, 4) < 1e-11


def test_zeros_in_R_are_refused_with_their_place():
    R = without_zeros(4, 4, 4)
    R[2, 1, 3] = 0
    M = MMStar(orthogonal(4, 4, 4), R, orthogonal(4, 4, 4)).to_dense().detach()
    with pytest.raises(ValueError, match=r"block \(1, 3\) of P M P\^T is singular .* zero entry"):
        factorize(M, 4)


def test_a_matrix_outside_the_class_is_refused_with_its_residual():
    with pytest.raises(ValueError, match=r"not in the class MM\* with block size 4.* residual"):
        factorize(torch.randn(16, 16, dtype=R64), 4)


def test_shapes_and_block_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="one square matrix"):
        factorize(torch.randn(4, 6))
    with pytest.raises(ValueError, match="divides 16; got 5"):
        factorize(torch.eye(16), 5)


@pytest.mark.parametrize("dtype", [R64, C128])
def test_simultaneous_eigenvectors_diagonalise_the_whole_family(dtype):
    V = torch.randn(6, 6, dtype=dtype)
    values = torch.randn(5, 6, dtype=dtype)
    values[:, 1] = values[:, 0]
    family = V @ torch.diag_embed(values) @ torch.linalg.inv(V)
    found = simultaneous_eigenvectors(family)
    inner = torch.linalg.solve(found, family @ found)
    off = inner - torch.diag_embed(inner.diagonal(dim1=-2, dim2=-1))
    assert off.abs().max() < 1e-9 * inner.abs().max()
    torch.testing.assert_close(torch.linalg.vector_norm(found, dim=0), torch.ones(6, dtype=R64))


def test_factors_of_several_dtypes_have_their_common_one():
    L1, R, L2 = torch.randn(2, 3, 3), torch.randn(3, 2, 2, dtype=torch.complex64), torch.randn(2, 3, 3)
    mixed = MMStar(L1, R, L2)
    one = MMStar(*(factor.to(torch.complex64) for factor in (L1, R, L2)))
    x = torch.randn(6)
    torch.testing.assert_close(mixed(x), one(x))
    assert mixed.num_parameters == 2 * (L1.numel() + R.numel() + L2.numel())
