"""MonarchLinear in place of nn.Linear: variance, exact conversions, learning rates, low precision, compile."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn

from monarch_core import MonarchLinear, param_groups
from monarch_core.experts import MonarchStack
from monarch_core.multiply import multiply_reference


@pytest.mark.parametrize(
    ("sizes", "blocks"),
    [
        ((1024, 1024), 4),
        ((1024, 1024), 32),
        ((512, 2048), 4),
        ((2048, 512), 4),
        ((700, 300), (7, 5)),
        ((300, 700), 11),
    ],
)
def test_outputs_start_with_the_variance_of_nn_linear(sizes, blocks):
    x = torch.randn(512, sizes[0])
    with torch.no_grad():
        ours = torch.stack([MonarchLinear(*sizes, blocks=blocks)(x).var() for _ in range(6)]).mean()
        theirs = torch.stack([nn.Linear(*sizes)(x).var() for _ in range(6)]).mean()
    assert abs(ours / theirs - 1) < 0.05


def test_the_bias_starts_like_that_of_nn_linear():
    bias = MonarchLinear(100, 5000).bias
    assert bias.abs().max() <= 0.1
    assert bias.var().item() == pytest.approx(0.01 / 3, rel=0.1)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("sizes", "blocks", "rank"),
    [((48, 96), 4, None), ((96, 48), (6, 3), 2), ((130, 70), 4, 1), ((9, 5), 2, None)],
)
def test_the_layer_is_its_matrix_and_bias(assert_close, sizes, blocks, rank, bias):
    layer = MonarchLinear(*sizes, bias=bias, blocks=blocks, rank=rank, dtype=torch.float64)
    x = torch.randn(2, 7, sizes[0], dtype=torch.float64)
    expected = nn.functional.linear(x, layer.weight, layer.bias)
    assert_close(layer(x), expected)
    with torch.no_grad():
        assert_close(layer.eval()(x), expected)


@pytest.mark.parametrize(("sizes", "blocks"), [((48, 96), 4), ((130, 70), (4, 3))])
def test_to_linear_is_exact_and_from_linear_returns(assert_close, sizes, blocks):
    layer = MonarchLinear(*sizes, blocks=blocks, dtype=torch.float64).eval()
    linear = layer.to_linear()
    x = torch.randn(5, sizes[0], dtype=torch.float64)
    assert type(linear) is nn.Linear
    assert_close(linear(x), layer(x))
    again = MonarchLinear.from_linear(linear, blocks)
    assert_close(again(x), layer(x))
    assert again.operator.R.shape == layer.operator.R.shape


@pytest.mark.parametrize("training", [True, False])
def test_conversions_keep_dtype_flags_and_the_bias_itself(training):
    linear = nn.Linear(32, 32, dtype=torch.bfloat16).train(training)
    linear.weight.requires_grad_(False)
    layer = MonarchLinear.from_linear(linear)
    back = layer.to_linear()
    for module in (layer, back):
        assert module.training == training
        assert module.bias is linear.bias
    assert {p.dtype for p in layer.parameters()} == {torch.bfloat16}
    assert not any(p.requires_grad for p in layer.operator.parameters())
    assert not back.weight.requires_grad


def test_gradients_reach_factors_and_bias_like_the_reference(assert_close):
    layer = MonarchLinear(128, 192, blocks=4, dtype=torch.float64)
    x, weight = torch.randn(9, 128, dtype=torch.float64), torch.randn(9, 192, dtype=torch.float64)
    (layer(x) * weight).sum().backward()
    R, L, bias = (
        p.detach().clone().requires_grad_() for p in (layer.operator.R, layer.operator.L, layer.bias)
    )
    (multiply_reference(x, R, L, bias) * weight).sum().backward()
    for mine, reference in ((layer.operator.R, R), (layer.operator.L, L), (layer.bias, bias)):
        assert_close(mine.grad, reference.grad)


@pytest.mark.parametrize("sizes", [(128, 192), (30, 20)])
def test_autocast_gives_bfloat16_as_nn_linear_does(sizes):
    layer = MonarchLinear(*sizes)
    x = torch.randn(16, sizes[0])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = layer(x)
    assert low.dtype == torch.bfloat16
    full = layer(x)
    assert torch.dist(low.float(), full) < 0.02 * full.norm()
    low.float().sum().backward()
    assert layer.operator.R.grad.dtype == torch.float32


@pytest.mark.parametrize("n", [64, 256])
def test_autocast_leaves_double_precision_as_nn_linear_does(n):
    x = torch.randn(3, n, dtype=torch.float64)
    for training in (True, False):
        layer = MonarchLinear(n, n, dtype=torch.float64).train(training)
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(training):
            assert layer(x).dtype == torch.float64


def test_a_layer_without_values_passes_through_autocast():
    layer = MonarchLinear(64, 32, device="meta")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(torch.empty(3, 64, device="meta")).shape == (3, 32)


def test_storage_copy_and_pickle():
    layer = MonarchLinear(96, 48, blocks=(4, 3))
    assert list(layer.state_dict()) == ["bias", "operator.R", "operator.L"]
    x = torch.randn(3, 96)
    other = MonarchLinear(96, 48, blocks=(4, 3))
    other.load_state_dict(layer.state_dict())
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for twin in (other, copy.deepcopy(layer), torch.load(file, weights_only=False)):
        assert torch.equal(twin(x), layer(x))


def test_compile(assert_close):
    layer = MonarchLinear(128, 64)
    x = torch.randn(4, 128)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert_close(compiled(x), layer(x))


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize(("sizes", "rows"), [((64, 32), 3), ((256, 512), 64), ((65, 33), 3)])
@pytest.mark.parametrize("training", [True, False])
def test_trace(assert_close, sizes, rows, training):
    layer = MonarchLinear(*sizes).train(training)
    traced = torch.jit.trace(layer, torch.randn(rows, sizes[0]))
    x = torch.randn(2 * rows, sizes[0])
    assert_close(traced(x), layer(x))
    with torch.no_grad():
        assert_close(torch.jit.trace(layer, x)(x), layer(x))


def test_learning_rates_are_those_of_compute_better_spent():
    model = nn.Sequential(MonarchLinear(4096, 4096, blocks=64), nn.LayerNorm(4096), nn.Linear(4096, 10))
    groups = param_groups(model, lr=1e-3, weight_decay=0.1)
    found = {id(p): (g["lr"], g["weight_decay"]) for g in groups for p in g["params"]}
    layer, norm, head = model
    # 4096 inputs in the dense layer, 64 in a block of either factor, two factors.
    factor = 4096 / 64 / 2
    for p in (layer.operator.R, layer.operator.L):
        assert found[id(p)] == pytest.approx((1e-3 * factor, 0.1 / factor))
    assert found[id(head.weight)] == pytest.approx((1e-3, 0.1))
    for p in (layer.bias, norm.weight, norm.bias, head.bias):
        assert found[id(p)] == pytest.approx((1e-3, 0.0))
    assert len(found) == len(list(model.parameters()))


def test_multipliers_of_unequal_factors():
    layer = MonarchLinear(96, 24, blocks=(8, 3), rank=2)
    assert layer.learning_rate_multipliers() == {"R": 96 / 12 / 2, "L": 96 / 16 / 2}


def test_experts_have_the_learning_rates_of_linear_layers():
    stack, layer = (
        MonarchStack(torch.randn(3, 24, 96).requires_grad_(), blocks=(8, 3), rank=2),
        MonarchLinear(96, 24, False, (8, 3), 2),
    )
    ours, theirs = (
        [(group["lr"], group["weight_decay"]) for group in param_groups(each, 1e-3, 0.1)]
        for each in (stack, layer)
    )
    assert ours == theirs


def test_frozen_parameters_are_in_no_group():
    layer = MonarchLinear(64, 64)
    layer.operator.requires_grad_(False)
    assert [len(g["params"]) for g in param_groups(layer, 1e-3)] == [1]


def test_complex_types_and_wrong_inputs_are_refused():
    with pytest.raises(TypeError, match="MonarchLinear is real"):
        MonarchLinear(8, 8, dtype=torch.complex64)
    with pytest.raises(ValueError, match=r"should end in 128.*\(3, 64\)"):
        MonarchLinear(128, 128)(torch.ones(3, 64))
