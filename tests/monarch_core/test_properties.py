"""What every operator of the registry must be: linear, with an adjoint, differentiable, and easy to store and move."""

import copy
import io
import pickle
import shutil

import pytest
import safetensors.torch
import torch
from torch import Tensor
from torch.func import functional_call

from monarch_core import LinearOperator, Monarch, in_pairs


def draw(operator: LinearOperator, *batch: int, output: bool = False) -> Tensor:
    return torch.randn(*batch, *(operator.out_shape if output else operator.in_shape), dtype=operator.dtype)


def dot(a: Tensor, b: Tensor) -> Tensor:
    return torch.vdot(a.flatten(), b.flatten())


def disturb(operator: LinearOperator) -> LinearOperator:
    """Parameters away from their closed form, so that a property cannot hold by luck of the starting point."""
    with torch.no_grad():
        for parameter in operator.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return operator


def test_matches_its_definition(defined_case, assert_close):
    operator = defined_case.operator()
    expected = torch.from_numpy(defined_case.matrix()).to(operator.dtype)
    assert_close(operator.to_dense(), expected)


def test_is_linear(case, assert_close):
    A = disturb(case.operator())
    x, y = draw(A, 3), draw(A, 3)
    assert_close(A(2.5 * x - y), 2.5 * A(x) - A(y))


def test_adjoint_passes_the_dot_test(case, assert_close):
    A = disturb(case.operator())
    for operator in (A, A.H, A.T, A.conj()):
        x, y = draw(operator), draw(operator, output=True)
        scale = torch.linalg.vector_norm(operator(x)) * torch.linalg.vector_norm(y)
        assert (dot(operator(x), y) - dot(x, operator.adjoint(y))).abs() <= 1e-13 * scale


def test_agrees_with_its_matrix_on_any_batch(case, assert_close):
    A = disturb(case.operator())
    dense = A.to_dense()
    assert dense.shape == (A.out_features, A.in_features)
    assert dense.dtype == A.dtype
    for batch in ((), (3,), (2, 1, 3), (0,)):
        x = draw(A, *batch)
        expected = x.reshape(*batch, A.in_features) @ dense.mT
        assert_close(A(x), expected.reshape(*batch, *A.out_shape))


def test_views_are_the_transposed_and_conjugated_matrix(case, assert_close):
    A = disturb(case.operator())
    dense = A.to_dense()
    assert_close(A.H.to_dense(), dense.mH)
    assert_close(A.T.to_dense(), dense.mT)
    assert_close(A.conj().to_dense(), dense.conj())
    assert_close(A.H.T.to_dense(), dense.conj())
    assert_close((A @ A.H).to_dense(), dense @ dense.mH)


def test_views_share_the_parameters(case):
    A = case.operator()
    assert {id(p) for p in A.H.parameters()} == {id(p) for p in A.parameters()}
    assert A.H.H.num_parameters == A.num_parameters
    A.H(draw(A, 2, output=True)).abs().square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in A.parameters())


def test_projection_of_its_matrix_gives_it_back(single_case, assert_close):
    M = disturb(single_case.operator())
    again = Monarch.from_dense(M.to_dense(), M.blocks, M.rank)
    assert (again.blocks, again.rank, again.dtype) == (M.blocks, M.rank, M.dtype)
    assert_close(again.to_dense(), M.to_dense())


def test_gradients_of_input_and_parameters(case):
    A = disturb(case.operator())
    names = [name for name, _ in A.named_parameters()]

    def apply(x: Tensor, *values: Tensor) -> Tensor:
        return functional_call(A, dict(zip(names, values, strict=True)), (x,))

    values = [p.detach().clone().requires_grad_() for p in A.parameters()]
    assert torch.autograd.gradcheck(apply, (draw(A, 2).requires_grad_(), *values), fast_mode=True)


def test_accepts_real_and_complex_inputs(case, assert_close):
    A = case.operator()
    x = torch.randn(2, *A.in_shape, dtype=torch.float64)
    z = torch.complex(x, torch.randn_like(x))
    assert A(x).dtype == A.dtype
    assert_close(A(x), A(x.to(torch.complex128)) if A.dtype.is_complex else A(x.to(torch.complex128)).real)
    assert_close(A(z).to(torch.complex128), torch.complex(x, 0 * x).new_tensor(1j) * A(z / 1j))


def test_state_dict_round_trip(case, tmp_path):
    source, other = disturb(case.operator()), case.operator()
    x = draw(source, 2)
    assert not torch.equal(source(x), other(x))
    other.load_state_dict(source.state_dict())
    assert torch.equal(source(x), other(x))


def test_safetensors_round_trip(case, tmp_path):
    source, other = disturb(case.operator()), case.operator()
    safetensors.torch.save_model(source, str(tmp_path / "operator.safetensors"))
    safetensors.torch.load_model(other, str(tmp_path / "operator.safetensors"))
    assert torch.equal(source.to_dense(), other.to_dense())


def test_only_parameters_are_stored(case):
    A = case.operator()
    assert sum(v.numel() for v in A.state_dict().values()) == A.num_parameters
    assert all(not p.is_complex() for p in A.parameters())


def test_deepcopy_is_equal_and_independent(case):
    A = case.operator()
    B = copy.deepcopy(A)
    before = A.to_dense()
    assert torch.equal(before, B.to_dense())
    disturb(B)
    assert torch.equal(before, A.to_dense())
    assert not torch.equal(before, B.to_dense())


def test_pickle_round_trip(case):
    A = disturb(case.operator())
    B = pickle.loads(pickle.dumps(A))
    assert torch.equal(A.to_dense(), B.to_dense())


def test_vmap_over_inputs_and_parameters(case, assert_close):
    A = case.operator()
    x = draw(A, 3)
    assert_close(torch.vmap(A)(x), A(x))
    assert_close(torch.vmap(A, in_dims=1)(x.movedim(0, 1)), A(x))
    B = disturb(case.operator())
    stacked = {
        name: torch.stack((p, q)) for (name, p), q in zip(A.named_parameters(), B.parameters(), strict=True)
    }
    both = torch.vmap(lambda values, v: functional_call(A, values, (v,)), (0, None))(stacked, x)
    assert_close(both, torch.stack((A(x), B(x))))


def test_evaluation_agrees_with_training(case, assert_close):
    A = case.operator()
    x, y = draw(A, 3), draw(A, 3, output=True)
    expected, adjoint = A(x), A.adjoint(y)
    A.eval()
    with torch.no_grad():
        assert_close(A(x), expected.detach())
        assert_close(A.adjoint(y), adjoint.detach())
        disturb(A)
        after = A(x)
    assert_close(after, A(x).detach())
    assert torch.linalg.vector_norm(after - expected) > 1e-3


def test_moves_to_single_precision(case, assert_close):
    A = case.operator()
    x = draw(A, 3)
    expected = A(x).detach()
    A.to(torch.float32)
    single = torch.complex64 if expected.is_complex() else torch.float32
    assert A.dtype == single
    assert A(x.to(single)).dtype == single
    assert_close(A(x.to(single)).to(expected.dtype), expected, tolerance=5e-6)


def test_parameter_and_operation_counts_are_consistent(case):
    A = case.operator()
    assert A.num_parameters == sum(p.numel() for p in A.parameters()) > 0
    assert A.flops(batch=6) == 6 * A.flops() > 0


def test_wrong_size_is_named(case):
    A = case.operator()
    wrong = torch.ones(2, *A.in_shape[:-1], A.in_shape[-1] + 1, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"the input should end in .* but its shape is \(2, "):
        A(wrong)


def test_compiles(compiled_case, assert_close):
    A = compiled_case.operator()
    x = draw(A, 3)
    torch._dynamo.reset()
    compiled = torch.compile(A, backend="aot_eager", fullgraph=True)
    assert_close(compiled(x), A(x))
    assert_close(compiled(x.real), A(x.real))
    compiled(x).abs().square().sum().backward()
    gradients = [p.grad.clone() for p in A.parameters()]
    A.zero_grad()
    A(x).abs().square().sum().backward()
    for compiled_gradient, parameter in zip(gradients, A.parameters(), strict=True):
        assert_close(compiled_gradient, parameter.grad)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # people still use it
@pytest.mark.parametrize("training", [True, False])
def test_traces(case, training, assert_close):
    A = case.operator().train(training)
    traced = torch.jit.trace(A, draw(A, 3))
    torch.jit.save(traced, io.BytesIO())
    x = draw(A, 5)
    assert_close(traced(x), A(x))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # torch's own import
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_compiles_to_native_code(assert_close):
    M = Monarch(16, dtype=torch.float64)
    x = torch.randn(3, 16, dtype=torch.float64)
    torch._dynamo.reset()
    assert_close(torch.compile(M, fullgraph=True)(x), M(x))


def test_real_form_does_to_pairs_what_the_operator_does_to_complex_numbers(case, assert_close):
    A = disturb(case.operator())
    form = in_pairs(A)
    complex_dtype = torch.promote_types(A.dtype, torch.complex64)
    x, y = (torch.randn(2, *shape, dtype=complex_dtype) for shape in (A.in_shape, A.out_shape))
    assert_close(form(torch.view_as_real(x)), torch.view_as_real(A(x).resolve_conj()))
    assert_close(form.adjoint(torch.view_as_real(y)), torch.view_as_real(A.adjoint(y).resolve_conj()))
    assert not any(tensor.is_complex() for tensor in (*form.parameters(), *form.buffers()))
    assert not set(form.parameters()) & set(A.parameters())  # copies
