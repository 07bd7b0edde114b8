"""Conversion of models: names, flags, dtypes and ties survive both ways."""

from __future__ import annotations

import copy
import re

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from monarch_core import MonarchAttention, MonarchLinear, densify, load_converted, monarchize, save_converted


def kinds(model: nn.Module) -> dict[str, str]:
    return {name: type(m).__name__ for name, m in model.named_modules() if not list(m.children())}


def perceptron() -> nn.Sequential:
    inner = nn.Sequential(nn.Linear(128, 128, bias=False))
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), inner, nn.Linear(128, 8))


def test_a_monarch_model_survives_the_round_trip(assert_close):
    model = perceptron().double()
    monarchize(model)
    x = torch.randn(5, 64, dtype=torch.float64)
    expected = model(x)
    dense = densify(model)
    assert dense is model
    assert not any(isinstance(m, MonarchLinear) for m in dense.modules())
    assert_close(dense(x), expected)
    monarchize(dense)
    assert_close(dense(x), expected)


def test_names_flags_dtypes_and_biases_stay():
    model = perceptron().bfloat16()
    model[2].eval()
    model[0].weight.requires_grad_(False)
    names, bias = [name for name, _ in model.named_modules()], model[0].bias
    monarchize(model, blocks=(4, 2))
    assert [n for n, _ in model.named_modules() if not n.endswith("operator")] == names
    assert isinstance(model[2][0], MonarchLinear)
    assert model[2][0].bias is None
    assert not model[2][0].training
    assert model[0].training
    assert model[0].bias is bias
    assert not model[0].operator.R.requires_grad
    assert model[3].operator.R.requires_grad
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    densify(model)
    assert [name for name, _ in model.named_modules()] == names
    assert not model[2][0].training
    assert not model[0].weight.requires_grad


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (None, ["0", "2.0", "3"]),
        (r"^[03]$", ["0", "3"]),
        (lambda name, layer: layer.out_features == 128, ["0", "2.0"]),
        (nn.Linear, ["0", "2.0", "3"]),
    ],
)
def test_selection_by_predicate_expression_or_type(select, expected):
    model = perceptron()
    report = monarchize(model, select)
    assert list(report.replaced) == expected
    assert [name for name, kind in kinds(model).items() if kind == "Monarch"] == [
        f"{n}.operator" for n in expected
    ]


def test_selection_by_the_type_that_contains_the_layer():
    class Feedforward(nn.Sequential):
        pass

    model = nn.Sequential(nn.Linear(64, 64), Feedforward(nn.Linear(64, 64), nn.ReLU()))
    monarchize(model, Feedforward)
    assert type(model[0]) is nn.Linear
    assert isinstance(model[1][0], MonarchLinear)


def test_a_layer_by_itself_cannot_be_replaced_in_place():
    with pytest.raises(ValueError, match=r"use MonarchLinear.from_linear\(layer\)"):
        monarchize(nn.Linear(64, 64))
    assert type(densify(MonarchLinear(64, 64))) is nn.Linear


def test_one_layer_under_two_names_stays_one():
    layer = nn.Linear(64, 64)
    model = nn.Sequential(layer, nn.ReLU(), layer)
    monarchize(model)
    assert isinstance(model[0], MonarchLinear)
    assert model[0] is model[2]
    densify(model)
    assert type(model[0]) is nn.Linear
    assert model[0] is model[2]


def test_layers_that_share_a_weight_share_its_factors_and_keep_their_own_biases():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    model[1].weight = model[0].weight
    biases = [layer.bias for layer in model]
    monarchize(model)
    assert model[0].operator is model[1].operator
    assert [layer.bias for layer in model] == biases
    densify(model)
    assert model[0].weight is model[1].weight
    assert model[0].bias is not model[1].bias


def test_a_weight_tied_to_an_embedding_stays_tied():
    model = nn.ModuleDict(
        {"embed": nn.Embedding(128, 64), "mix": nn.Linear(64, 64), "head": nn.Linear(64, 128)}
    )
    model["head"].weight = model["embed"].weight
    report = monarchize(model, select="mix|head")
    assert model["head"].weight is model["embed"].weight
    assert isinstance(model["mix"], MonarchLinear)
    assert report.left == {"head": "its weight is tied to embed"}


def test_layers_that_would_not_shrink_stay_dense():
    model = nn.Sequential(nn.Linear(64, 2), nn.Linear(3, 64), nn.Linear(8, 8))
    with pytest.warns(UserWarning, match="replaced nothing: .* 3 left: Monarch with these blocks"):
        monarchize(model, blocks=2, rank=4)
    assert kinds(model) == {"0": "Linear", "1": "Linear", "2": "Linear"}


@pytest.mark.parametrize(
    "change", [nn.utils.parametrizations.weight_norm, lambda l: prune.random_unstructured(l, "weight", 0.5)]
)
def test_computed_weights_are_left_unless_named(change, assert_close):
    model = nn.Sequential(change(nn.Linear(64, 64)), nn.Linear(64, 64))
    weight = model[0].weight.detach()
    report = monarchize(model)
    assert report.replaced == ("1",)
    assert "pruned or parametrised" in report.left["0"]
    monarchize(model, select="^0$")
    assert_close(model[0].weight, MonarchLinear.from_weight(weight).weight)
    assert model[0].operator.R.requires_grad


@pytest.mark.parametrize("name", ["lm_head", "classifier", "score"])
def test_heads_are_left_unless_named(name):
    model = nn.ModuleDict({"mix": nn.Linear(64, 64), name: nn.Linear(64, 128)})
    report = monarchize(copy.deepcopy(model))
    assert report.replaced == ("mix",)
    assert "an output head" in report.left[name]
    assert monarchize(copy.deepcopy(model), select=".*").replaced == ("mix",)
    assert monarchize(model, select=name).replaced == (name,)


def test_adapters_are_left_even_where_their_parent_is_selected():
    model = nn.ModuleDict({"q_proj": nn.ModuleDict({"base": nn.Linear(64, 64), "lora_A": nn.Linear(64, 16)})})
    report = monarchize(copy.deepcopy(model), select="q_proj")
    assert report.replaced == ("q_proj.base",)
    assert "an adapter" in report.left["q_proj.lora_A"]
    assert monarchize(model, select="lora_A", blocks=2).replaced == ("q_proj.lora_A",)


def test_every_linear_layer_is_in_the_report_with_its_reason():
    model = nn.ModuleDict(
        {
            "a": nn.Linear(64, 64),
            "small": nn.Linear(3, 3),
            "complex": nn.Linear(64, 64, dtype=torch.complex64),
            "custom": type("Custom", (nn.Linear,), {})(64, 64),
            "lazy": nn.LazyLinear(64),
            "conv": nn.Conv1d(64, 64, 3),
            "int8": quantised(),
        }
    )
    report = monarchize(model)
    assert report.replaced == ("a",)
    assert report.left == {
        "small": "Monarch with these blocks would not be smaller",
        "complex": "its weight is complex; use Monarch.from_dense",
        "custom": "Custom, a subclass of nn.Linear, may use its weight in another way",
        "lazy": "it has no weight yet; run the model once first",
        "int8": "quantised; dequantise the model first",
    }
    lines = str(report).splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("a  Linear 64 -> 64  replaced: 51% of the parameters, relative error 0.")
    assert lines[-1].startswith("1 of 6 linear layers replaced, ")


def quantised() -> nn.Linear:
    layer = nn.Linear(64, 64)
    layer.weight = nn.Parameter(torch.zeros(64, 64, dtype=torch.int8), requires_grad=False)
    return layer


def test_the_reported_error_is_that_of_the_matrices(assert_close):
    model = nn.Sequential(nn.Linear(64, 96), nn.MultiheadAttention(64, 4))
    weights = [
        model[0].weight.detach(),
        torch.cat((model[1].in_proj_weight, model[1].out_proj.weight)).detach(),
    ]
    report = monarchize(model)
    dense = densify(copy.deepcopy(model))
    after = [dense[0].weight, torch.cat((dense[1].in_proj_weight, dense[1].out_proj.weight))]
    for layer, before, now in zip(report.layers, weights, after, strict=True):
        assert layer.relative_error == pytest.approx(
            (torch.dist(before, now) / before.norm()).item(), rel=1e-4
        )


@pytest.mark.filterwarnings("error")
def test_a_model_without_linear_layers_and_a_predicate_that_takes_none_are_warned_of():
    with pytest.warns(UserWarning, match="replaced nothing: Sequential has no linear layers"):
        monarchize(nn.Sequential(nn.ReLU()))
    with pytest.warns(UserWarning, match="replaced nothing: .*3 left: not selected"):
        monarchize(perceptron(), select=lambda name, layer: False)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("atention", "matches none of the 2 linear layers of the model. Did you mean 'attention'?"),
        ("zzz", "Their names are attention.query, mlp"),
        ("(", "is no regular expression"),
        (nn.LSTM, "none of the 2 linear layers of the model lies inside LSTM"),
    ],
)
def test_a_selection_that_hits_nothing_is_an_error(select, message):
    model = nn.ModuleDict(
        {"attention": nn.ModuleDict({"query": nn.Linear(64, 64)}), "mlp": nn.Linear(64, 64)}
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        monarchize(model, select)


def test_zero_matrices_stay_zero_and_train():
    model = nn.Sequential(nn.Linear(64, 64, bias=False))
    nn.init.zeros_(model[0].weight)
    monarchize(model)
    assert torch.equal(model[0].weight, torch.zeros(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(2):
        optimizer.zero_grad()
        (model(torch.ones(3, 64)) - 1).square().mean().backward()
        optimizer.step()
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"kdim": 32, "vdim": 48, "bias": False}])
def test_attention_with_monarch_projections_is_that_of_its_dense_form(options):
    model = nn.ModuleDict({"attention": nn.MultiheadAttention(64, 4, **options)})
    report = monarchize(model)
    assert report.replaced == ("attention",)
    monarch = model["attention"]
    assert isinstance(monarch, MonarchAttention)
    dense = densify(copy.deepcopy(model))["attention"]
    assert type(dense) is nn.MultiheadAttention
    q, k, v = (
        torch.randn(5, 5, 64),
        torch.randn(5, 5, options.get("kdim", 64)),
        torch.randn(5, 5, options.get("vdim", 64)),
    )
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    padding = torch.zeros(5, 5, dtype=torch.bool)
    padding[1, -2:] = True
    for call in (
        {},
        {"attn_mask": causal, "is_causal": True, "need_weights": False},
        {"attn_mask": causal, "key_padding_mask": padding, "average_attn_weights": False},
        {"attn_mask": torch.randn(20, 5, 5), "need_weights": False},
    ):
        ours, theirs = monarch(q, k, v, **call), dense(q, k, v, **call)
        torch.testing.assert_close(ours[0], theirs[0], rtol=1e-4, atol=1e-5)
        assert (ours[1] is None) == (theirs[1] is None)
        if ours[1] is not None:
            torch.testing.assert_close(ours[1], theirs[1], rtol=1e-4, atol=1e-5)
    one = monarch(q[0], k[0], v[0])[0]
    torch.testing.assert_close(one, dense(q[0], k[0], v[0])[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_with_monarch_projections_takes_an_empty_batch(batch_first):
    dense = nn.MultiheadAttention(64, 4, batch_first=batch_first)
    x = torch.empty(0, 5, 64) if batch_first else torch.empty(5, 0, 64)
    ours, weights = MonarchAttention.from_attention(dense)(x, x, x)
    assert ours.shape == dense(x, x, x)[0].shape
    assert weights.shape == (0, 5, 5)


def test_attention_with_keys_of_its_own_is_left():
    model = nn.Sequential(nn.MultiheadAttention(64, 4, add_bias_kv=True), nn.Linear(64, 64))
    assert list(monarchize(model).left) == ["0"]


@pytest.mark.parametrize("on_meta", [True, False])
def test_a_converted_model_is_rebuilt_from_its_folder(tmp_path, on_meta):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = perceptron()
            self.attention = nn.MultiheadAttention(128, 4)
            self.twin = nn.Linear(64, 128)
            self.twin.weight = self.body[0].weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.body[0](x) + self.twin(x)
            return self.body(self.body[2](x)[:, :64]) + self.attention(x, x, x)[0].mean()

    model = Net()
    monarchize(model, select="0|attention|twin", blocks=(4, 2))
    monarchize(model, select="3", blocks=2, rank=1)
    save_converted(model, tmp_path)
    with torch.device("meta" if on_meta else "cpu"):
        fresh = Net()
    again = load_converted(fresh, tmp_path)
    assert again is fresh
    x = torch.randn(3, 64)
    assert torch.equal(again(x), model(x))
    assert again.twin.operator is again.body[0].operator


def test_what_does_not_fit_a_folder_is_told(tmp_path):
    with pytest.raises(ValueError, match="has no Monarch layers"):
        save_converted(perceptron(), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"expected monarch.json"):
        load_converted(perceptron(), tmp_path)
    model = perceptron()
    monarchize(model)
    save_converted(model, tmp_path)
    other = nn.Sequential(nn.Linear(64, 128))
    with pytest.raises(ValueError, match=r"has a Monarch layer '2.0', which Sequential does not have"):
        load_converted(other, tmp_path)
    assert type(other[0]) is nn.Linear  # nothing was replaced
    with pytest.raises(ValueError, match=r"do not fit this Sequential"):
        load_converted(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), *perceptron()[2:]), tmp_path)


def test_a_model_that_cannot_be_stored_leaves_the_one_that_was(tmp_path):
    class Net(nn.Sequential):
        extra = None

        def get_extra_state(self) -> object:
            return self.extra

        def set_extra_state(self, state: object) -> None:
            pass

    model = Net(nn.Linear(64, 64))
    monarchize(model)
    save_converted(model, tmp_path)
    model.extra = lambda: None  # what torch.save cannot write
    model[0] = MonarchLinear(64, 64, blocks=8)
    with pytest.raises(Exception, match="pickle"):
        save_converted(model, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["monarch.json", "weights.pt"]
    assert load_converted(Net(nn.Linear(64, 64)), tmp_path)[0].operator.blocks == (4, 4)


def test_a_weight_that_is_not_finite_is_named_before_anything_is_replaced():
    model = perceptron()
    with torch.no_grad():
        model[2][0].weight[3, 5] = torch.nan
    with pytest.raises(ValueError, match=r"the weight of 2.0 has entries that are not finite"):
        monarchize(model)
    assert not any(isinstance(m, MonarchLinear) for m in model.modules())


def test_a_model_that_is_monarch_already_is_told_apart_from_one_without_layers():
    model = nn.Sequential(nn.Linear(64, 64))
    monarchize(model)
    with pytest.warns(UserWarning, match="has no linear layers other than its Monarch ones"):
        monarchize(model)


@pytest.mark.parametrize("select", [None, "self_attn", r"layers\.1", "linear"])
def test_an_encoder_takes_padded_batches_after_conversion(select):
    """In evaluation torch's encoder packs padded batches as nested tensors, for a path that reads dense weights."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    monarchize(encoder, select=select)
    x, padding = torch.randn(2, 5, 64), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        monarch = encoder(x, src_key_padding_mask=padding)
        dense = densify(copy.deepcopy(encoder))(x, src_key_padding_mask=padding)
    torch.testing.assert_close(monarch[~padding], dense[~padding], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_a_transformer_layer_works_with_monarch_attention_and_feedforwards(training):
    """In evaluation torch's fused path reads weights directly; a Monarch attention keeps the layer off it."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True).train(training)
    x = torch.randn(2, 5, 64)
    monarchize(layer)
    assert isinstance(layer.linear1, MonarchLinear)
    assert isinstance(layer.self_attn, MonarchAttention)
    with torch.no_grad():
        monarch = layer(x)
        dense = densify(copy.deepcopy(layer))(x)
    torch.testing.assert_close(monarch, dense, rtol=1e-4, atol=1e-5)


def test_a_fine_tuned_projection_starts_near_and_ends_nearer_to_the_dense_model():
    """Dense to sparse on a small real task: the projected model recovers most of what projection lost."""
    torch.manual_seed(1)
    x = torch.randn(512, 32)
    y = torch.sin(x @ torch.randn(32, 4) / 4)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4))
    trained = _train(model, x, y)
    monarchize(model)
    projected = _loss(model, x, y)
    tuned = _train(model, x, y)
    assert trained < 0.02
    assert projected > 2 * trained
    assert tuned < 0.3 * projected


def _loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


def _train(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return _loss(model, x, y)
