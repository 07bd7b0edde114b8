"""The fast product against the obvious one: values, gradients of both orders, torch.func, autocast, compile."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jacfwd, jacrev, vmap

from monarch_core import multiply as module
from monarch_core.multiply import _rows_per_chunk as rows_per_chunk
from monarch_core.multiply import multiply, multiply_reference

# Forward-mode differentiation in torch itself still goes through torch.jit.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

DTYPES = [torch.float64, torch.complex128]


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch):
    """The fast path at every size, in chunks of two rows: small tests walk over several, the last incomplete."""
    monkeypatch.setattr(module, "FEW_ELEMENTS", {"training": 0, "inference": 0})
    monkeypatch.setattr(module, "_rows_per_chunk", lambda x, R, L: 2)


def operands(rows=5, K=2, J=3, r=2, I=4, O=5, dtype=torch.float64):
    x, R, L = (torch.randn(s, dtype=dtype) for s in ((rows, K * I), (K, J, r, I), (J, O, K, r)))
    return [t.requires_grad_() for t in (x, R, L, torch.randn(O * J, dtype=dtype))]


def test_the_reference_is_the_definition():
    x, R, L, bias = operands()
    M = torch.zeros(15, 8, dtype=torch.float64)
    for j in range(3):
        for l in range(5):
            for k in range(2):
                for i in range(4):
                    M[l * 3 + j, k * 4 + i] = sum(L[j, l, k, r] * R[k, j, r, i] for r in range(2))
    torch.testing.assert_close(multiply_reference(x, R, L, bias), x @ M.T + bias)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 5)] * 5),
    batch=st.lists(st.integers(0, 3), max_size=3),
    real=st.booleans(),
)
def test_fast_and_reference_agree_forward_and_backward(sizes, batch, real):
    K, J, r, I, O = sizes
    _, R, L, bias = operands(1, K, J, r, I, O, DTYPES[0] if real else DTYPES[1])
    x = torch.randn(*batch, K * I, dtype=R.dtype, requires_grad=True)
    fast, reference = multiply(x, R, L, bias), multiply_reference(x, R, L, bias)
    torch.testing.assert_close(fast, reference)
    weight = torch.randn_like(reference)
    tensors = (x, R, L, bias)
    for one, other in zip(
        torch.autograd.grad(fast, tensors, weight),
        torch.autograd.grad(reference, tensors, weight),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("r", [1, 2])
def test_gradients_of_both_orders(dtype, r):
    tensors = operands(3, 2, 2, r, 2, 3, dtype)
    assert gradcheck(multiply, tensors, check_forward_ad=True)
    assert gradgradcheck(multiply, tensors)


@pytest.mark.parametrize("frozen", [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (0, 1, 2)])
def test_only_the_gradients_that_are_needed(frozen):
    tensors = operands()
    for index in frozen:
        tensors[index].requires_grad_(False)
    multiply(*tensors).square().sum().backward()
    twins = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    multiply_reference(*twins).square().sum().backward()
    for index, (tensor, twin) in enumerate(zip(tensors, twins, strict=True)):
        assert (tensor.grad is None) == (index in frozen)
        if tensor.grad is not None:
            torch.testing.assert_close(tensor.grad, twin.grad)


def test_operands_that_are_not_contiguous():
    x, R, L, bias = (t.detach() for t in operands())
    scattered = (
        x.T.contiguous().T,
        R.mT.contiguous().mT,
        L.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0),
    )
    assert not any(t.is_contiguous() for t in scattered)
    torch.testing.assert_close(multiply(*scattered, bias), multiply_reference(x, R, L, bias))


def test_backward_twice_through_one_graph():
    x, R, L, bias = operands()
    z = multiply(x, R, L, bias).square().sum()
    first = torch.autograd.grad(z, (x, R, L), retain_graph=True)
    second = torch.autograd.grad(z, (x, R, L))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)


def test_torch_func_transforms():
    x, R, L, bias = (t.detach() for t in operands())
    many = torch.randn(4, *x.shape, dtype=x.dtype)
    torch.testing.assert_close(
        vmap(lambda x: multiply(x, R, L, bias))(many), multiply_reference(many, R, L, bias)
    )
    factors = torch.randn(4, *R.shape, dtype=R.dtype)
    torch.testing.assert_close(
        vmap(lambda R: multiply(x, R, L, bias))(factors),
        torch.stack([multiply_reference(x, each, L, bias) for each in factors]),
    )
    per_sample = vmap(grad(lambda R, x: multiply(x, R, L, bias).square().sum()), (None, 0))(R, many)
    one_by_one = [grad(lambda R, x=x: multiply_reference(x, R, L, bias).square().sum())(R) for x in many]
    torch.testing.assert_close(per_sample, torch.stack(one_by_one))
    forward, backward = (jac(lambda x: multiply(x, R, L))(x) for jac in (jacfwd, jacrev))
    torch.testing.assert_close(forward, backward)


def test_autocast_computes_in_bfloat16_with_float32_gradients():
    x, R, L, bias = (t.detach().float().requires_grad_() for t in operands(64, 4, 4, 1, 4, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = multiply(x, R, L, bias)
    assert z.dtype == torch.bfloat16
    z.float().square().sum().backward()
    reference = multiply_reference(x, R, L, bias)
    assert (z - reference).norm() < 0.02 * reference.norm()
    (expected,) = torch.autograd.grad(reference.square().sum(), R)
    assert R.grad.dtype == torch.float32
    assert (R.grad - expected).norm() < 0.03 * expected.norm()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("fast", [True, False], ids=["computed in half", "computed in float32"])
def test_half_types_keep_their_digits_over_many_chunks(dtype, fast, monkeypatch):
    """Weight gradients are sums over thousands of rows; each chunk of them added in bfloat16 would be rounded."""
    monkeypatch.setattr("monarch_core.multiply._is_fast", lambda half: fast)
    monkeypatch.setattr("monarch_core.multiply.CHUNK_ELEMENTS", 4096)
    x, R, L, bias = (t.detach().to(dtype) for t in operands(2048, 4, 4, 2, 8, 8))
    assert rows_per_chunk(x, R, L) <= 256
    weight = torch.rand(2048, 32).to(dtype)
    half = [t.clone().requires_grad_() for t in (x, R, L, bias)]
    exact = [t.double().requires_grad_() for t in (x, R, L, bias)]
    z, reference = multiply(*half), multiply_reference(*exact)
    assert z.dtype == dtype
    z.backward(weight)
    reference.backward(weight.double())
    for low, high in zip((z, *(t.grad for t in half)), (reference, *(t.grad for t in exact)), strict=True):
        assert low.dtype == dtype
        assert torch.dist(low.double(), high) < 6e-3 * high.norm()


def test_chunks_cover_wide_operands_in_several_pieces():
    x, R, L = torch.empty(1024, 4096), torch.empty(64, 64, 1, 64), torch.empty(64, 64, 64, 1)
    rows = rows_per_chunk(x, R, L)
    assert 32 <= rows < 1024
    assert rows & (rows - 1)  # no power of two
