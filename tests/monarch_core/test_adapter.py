"""Monarch adapters: nothing changes at the start, only they train, and merged they are exact."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from monarch_core import (
    MonarchAdapter,
    MonarchLinear,
    attach_adapter,
    load_adapter,
    merge_adapter,
    monarchize,
    save_adapter,
)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(48, 64), nn.GELU(), MonarchLinear(64, 64), nn.Linear(64, 30)).double()


def trained(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


X = torch.randn(5, 48, dtype=torch.float64)


def test_the_function_does_not_change_at_the_start():
    model = network()
    before = model(X)
    assert attach_adapter(model, blocks=4, rank=1) == ("0", "2", "3")
    assert torch.equal(model(X), before)


def test_only_the_adapter_trains_and_all_of_it_does():
    model = network()
    attach_adapter(model, select="0|3", blocks=2, rank=2)
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    assert names == [f"{at}.operator.{factor}" for at in (0, 3) for factor in "RL"]
    # The paper's count: sizes in and out, times the rank per block, J r = 4.
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 4 * (48 + 64 + 64 + 30)
    frozen = {name: p.clone() for name, p in model.named_parameters() if not p.requires_grad}
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    target = torch.randn(5, 30, dtype=torch.float64)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = (model(X) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert all(torch.equal(frozen[name], p) for name, p in model.named_parameters() if name in frozen)


@pytest.mark.parametrize("blocks", [4, (3, 5)])
def test_merged_it_is_the_same_function_in_the_original_layers(blocks, assert_close):
    model = network()
    kinds = [type(layer) for layer in model]
    attach_adapter(model, blocks=blocks, rank=2)
    expected = trained(model)(X)
    assert merge_adapter(model) is model
    assert_close(model(X), expected)
    assert not any(isinstance(m, MonarchAdapter) for m in model.modules())
    if blocks == 4:  # ranks of Monarch matrices with the same blocks add up
        assert [type(layer) for layer in model] == kinds
        assert model[2].operator.rank == 4 + 2


@pytest.mark.parametrize("layer", [nn.Linear, MonarchLinear])
def test_a_merged_layer_stays_frozen_and_in_its_mode(layer):
    model = nn.Sequential(layer(64, 64)).eval()
    attach_adapter(model)
    merge_adapter(model)
    assert not any(p.requires_grad for p in model.parameters())
    assert not any(m.training for m in model.modules())


def test_merging_leaves_what_the_weight_was_tied_to(assert_close):
    model = nn.ModuleDict(
        {"embed": nn.Embedding(30, 64), "mix": nn.Linear(64, 30), "twin": nn.Linear(64, 30)}
    )
    model["mix"].weight = model["twin"].weight = model["embed"].weight
    attach_adapter(model)
    trained(model)
    x, embedded = torch.randn(3, 64), model["embed"].weight.clone()
    expected = model["mix"](x) - model["twin"](x)
    merge_adapter(model)
    torch.testing.assert_close(model["mix"](x) - model["twin"](x), expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(model["embed"].weight, embedded)


@torch.no_grad()
def test_what_reads_the_weight_of_an_adapted_layer_gets_that_of_the_sum():
    """In evaluation torch's transformer layer reads weights and biases instead of calling the layers."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True).eval()
    attach_adapter(layer, select="linear")
    trained(layer)
    x = torch.randn(2, 5, 64)
    fused = layer(x)
    torch.testing.assert_close(fused, merge_adapter(layer)(x), rtol=1e-4, atol=1e-5)


def test_nothing_is_merged_into_a_weight_that_is_computed():
    model = nn.Sequential(nn.Linear(64, 64))
    prune.random_unstructured(model[0], "weight", 0.5)
    attach_adapter(model, select="0")
    with pytest.raises(ValueError, match="make it permanent first"):
        merge_adapter(model)


def test_where_one_cannot_be_merged_none_is():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    prune.random_unstructured(model[1], "weight", 0.5)
    attach_adapter(model, select=lambda name, layer: True)
    with pytest.raises(ValueError, match="make it permanent first"):
        merge_adapter(model)
    assert [type(layer) for layer in model] == [MonarchAdapter, MonarchAdapter]


def test_the_adapter_of_a_layer_by_itself_is_loaded_too(tmp_path):
    layer, x = nn.Linear(64, 64), torch.randn(3, 64)
    adapter = MonarchAdapter(copy.deepcopy(layer))
    trained(adapter)
    save_adapter(adapter, tmp_path / "adapter.pt")
    assert torch.equal(load_adapter(layer, tmp_path / "adapter.pt")(x), adapter(x))


def test_save_and_load_only_the_adapter(tmp_path):
    model = network()
    attach_adapter(model, select="^[02]$", rank=2)
    trained(model)
    save_adapter(model, tmp_path / "task" / "adapter.pt")
    again = load_adapter(network(), tmp_path / "task" / "adapter.pt")
    assert torch.equal(again(X), model(X))
    assert [n for n, p in again.named_parameters() if p.requires_grad] == [
        n for n, p in model.named_parameters() if p.requires_grad
    ]
    stored = torch.load(tmp_path / "task" / "adapter.pt", weights_only=True)["layers"]
    assert list(stored) == ["0", "2"]
    with pytest.raises(ValueError, match="belong to another model: Sequential has no layer '2'"):
        load_adapter(nn.Sequential(nn.Linear(48, 64)), tmp_path / "task" / "adapter.pt")


def test_heads_are_left_unless_named_and_a_second_call_adds_where_there_is_none():
    model = nn.ModuleDict({"mix": nn.Linear(64, 64), "lm_head": nn.Linear(64, 64)})
    assert attach_adapter(model) == ("mix",)
    assert attach_adapter(model, select="lm_head") == ("lm_head",)
    assert all(layer.operator.R.requires_grad for layer in model.values())


def test_a_model_can_be_converted_under_its_adapters(assert_close):
    model = nn.Sequential(nn.Linear(64, 64)).double()
    attach_adapter(model)
    trained(model)
    monarchize(model)
    assert isinstance(model[0].base, MonarchLinear)
    x = torch.randn(3, 64, dtype=torch.float64)
    expected = model(x)
    assert_close(merge_adapter(copy.deepcopy(model))(x), expected)


def test_mistakes_are_explained():
    with pytest.raises(ValueError, match="Did you mean 'mix'"):
        attach_adapter(nn.ModuleDict({"mix": nn.Linear(8, 8)}), select="mixx")
    with pytest.raises(ValueError, match="has no linear layers"):
        attach_adapter(nn.Sequential(nn.ReLU()))
    adapted = nn.Sequential(nn.Linear(8, 8))
    attach_adapter(adapted)
    with pytest.raises(ValueError, match="that can have an adapter have one"):
        attach_adapter(adapted)
    with pytest.raises(ValueError, match="has no Monarch adapters"):
        merge_adapter(network())
    with pytest.raises(TypeError, match="beside a linear layer; got ReLU"):
        MonarchAdapter(nn.ReLU())
