"""Projection: optimal, idempotent, exact where it can be; batched, complex, rectangular, of any rank."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from monarch_core import Monarch
from monarch_core.projection import project, projection_report, truncate

DTYPES = [torch.float64, torch.complex128]


def dense(R: Tensor, L: Tensor) -> Tensor:
    return torch.einsum("...jlkr,...kjri->...ljki", L, R).flatten(-2).flatten(-3, -2)


def best_error(A: Tensor, K: int, J: int, r: int) -> float:
    """The error of the projection from full singular value decompositions: an independent route."""
    O, I = A.shape[-2] // J, A.shape[-1] // K
    blocks = [A[j::J, k * I : (k + 1) * I] for j in range(J) for k in range(K)]
    assert blocks[0].shape == (O, I)
    return sum(torch.linalg.svdvals(block)[r:].square().sum() for block in blocks).sqrt().item()


@settings(max_examples=40, deadline=None)
@given(sizes=st.tuples(*[st.integers(1, 5)] * 4), r=st.integers(1, 6), real=st.booleans())
def test_the_error_is_that_of_truncated_singular_values(sizes, r, real):
    K, J, I, O = sizes
    A = torch.randn(J * O, K * I, dtype=DTYPES[0] if real else DTYPES[1])
    R, L = project(A, (K, J), r)
    assert R.shape == (K, J, r, I)
    assert L.shape == (J, O, K, r)
    assert torch.dist(A, dense(R, L)).item() == pytest.approx(best_error(A, K, J, r), abs=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [1, 2])
def test_no_perturbation_is_better(dtype, rank):
    A = torch.randn(24, 30, dtype=dtype)
    R, L = project(A, (5, 4), rank)
    error = torch.dist(A, dense(R, L))
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(30):
            moved = dense(R + size * torch.randn_like(R), L + size * torch.randn_like(L))
            assert torch.dist(A, moved) >= error


def test_no_restart_of_gradient_descent_finds_a_better_one():
    A = torch.randn(16, 16, dtype=torch.float64)
    error = torch.dist(A, dense(*project(A, 4, 1)))
    reached = []
    for _ in range(6):
        R, L = (torch.randn(4, 4, *shape, dtype=A.dtype).requires_grad_() for shape in ((1, 4), (4, 1)))
        optimizer = torch.optim.LBFGS([R, L], max_iter=300, line_search_fn="strong_wolfe")

        def loss(R=R, L=L, optimizer=optimizer):
            optimizer.zero_grad()
            value = (A - dense(R, L)).square().sum()
            value.backward()
            return value

        optimizer.step(loss)
        reached.append(loss().sqrt().item())
    assert min(reached) >= error * (1 - 1e-9)
    assert min(reached) <= error * 1.05  # the descent is no straw man: it comes near


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("blocks", "rank"), [((4, 3), 1), ((3, 4), 2), ((2, 6), 3), ((1, 12), 1), ((12, 1), 1)]
)
def test_monarch_matrices_are_recovered_and_projection_is_idempotent(assert_close, dtype, blocks, rank):
    K, J = blocks
    M = dense(torch.randn(K, J, rank, 24 // K, dtype=dtype), torch.randn(J, 36 // J, K, rank, dtype=dtype))
    assert_close(dense(*project(M, blocks, rank)), M)
    once = dense(*project(torch.randn_like(M), blocks, rank))
    assert_close(dense(*project(once, blocks, rank)), once)


@pytest.mark.parametrize("rank", [1, 2])
def test_a_batch_is_projected_matrix_by_matrix(assert_close, rank):
    A = torch.randn(2, 3, 12, 20, dtype=torch.float64)
    R, L = project(A, (4, 3), rank)
    for index in ((0, 0), (1, 2)):
        assert_close(dense(R[index], L[index]), dense(*project(A[index], (4, 3), rank)))


def test_the_factors_share_the_singular_values_evenly(assert_close):
    A = torch.randn(24, 24, dtype=torch.complex128)
    R, L = project(A, (4, 3), 2)
    right, left = R.transpose(0, 1), L.movedim(1, 2)  # (J, K, r, I), (J, K, O, r)
    assert_close(right @ right.mH, (left.mH @ left).conj().resolve_conj())
    diagonal = torch.diag_embed((right @ right.mH).diagonal(dim1=-2, dim2=-1))
    assert_close(right @ right.mH, diagonal)


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("size", [6, 150])
def test_ill_separated_singular_values_do_not_cost_optimality(gap, size):
    U, V = (torch.linalg.qr(torch.randn(size, size, dtype=torch.float64)).Q for _ in range(2))
    values = torch.full((size,), 0.3, dtype=torch.float64)
    values[:3] = torch.tensor([1.0, 1 - gap, 1 - 2 * gap])
    A = U @ torch.diag(values) @ V
    left, right = truncate(A, 1)
    assert torch.dist(A, left @ right).item() == pytest.approx(values[1:].norm().item(), rel=1e-14 * size)


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e30])
def test_blocks_of_any_size_down_to_zero(assert_close, scale):
    A = torch.randn(12, 12, dtype=torch.float64)
    A[::3, :4] *= scale  # the sub-block (0, 0) of blocks=(3, 3)
    R, L = project(A, (3, 3), 1)
    small = A[::3, :4]
    left, right = truncate(small, 1)
    assert torch.isfinite(R).all()
    assert_close(dense(R, L)[::3, :4], left @ right)
    assert torch.linalg.matrix_norm(small - left @ right) <= torch.linalg.svdvals(small)[1:].norm() * (
        1 + 1e-9
    )


@pytest.mark.parametrize(("dtype", "allowed"), [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)])
def test_low_precision_is_nearly_optimal_and_keeps_its_dtype(dtype, allowed):
    A = torch.randn(64, 64).to(dtype)
    R, L = project(A, 8)
    assert R.dtype == L.dtype == dtype
    error, best = torch.dist(A.double(), dense(R.double(), L.double())), best_error(A.double(), 8, 8, 1)
    assert error <= best * (1 + allowed)


def test_from_dense_projects_sizes_that_do_not_divide_optimally():
    A = torch.randn(10, 14, dtype=torch.float64)
    M = Monarch.from_dense(A, blocks=(4, 3), rank=1).to_dense()
    blocks = [A[j::3, k * 4 : (k + 1) * 4] for j in range(3) for k in range(4)]
    best = sum(torch.linalg.svdvals(block)[1:].square().sum() for block in blocks).sqrt()
    assert torch.dist(A, M).item() == pytest.approx(best.item(), rel=1e-12)


def test_the_report_states_error_and_size():
    A = torch.randn(16, 16, dtype=torch.float64)
    R, L = project(A, 4)
    report = projection_report(A, R, L)
    assert report.relative_error == pytest.approx(best_error(A, 4, 4, 1) / A.norm().item(), rel=1e-12)
    assert (report.parameters, report.dense_parameters) == (128, 256)
    assert "50.0% of the dense parameters" in str(report)


def test_block_counts_that_do_not_divide_are_refused_with_the_cure():
    with pytest.raises(ValueError, match=r"K that divides 12.*from_dense pads"):
        project(torch.randn(12, 12), blocks=5)
