"""What happens at each point by itself, in whatever order of memory the fields come."""

import pytest
import torch
from torch import nn
from torch.nn.functional import glu

from pde.models.parts.pointwise import TwoLayers, gate, mix_points


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_tiled_layers_have_the_right_derivatives(activation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pde.models.parts.pointwise.ROWS_AT_ONCE", 3)  # a last piece that is not full
    shapes = ((8, 4), (5, 4), (5,), (2, 5), (2,))
    arguments = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(lambda *given: TwoLayers.apply(*given, activation), arguments)


@pytest.mark.parametrize("order", [(3, 0, 1, 2), (1, 3, 0, 2), (0, 1, 2, 3)])
def test_points_are_mixed_alike_in_every_order_of_memory(order: tuple[int, ...]) -> None:
    layer = nn.Linear(3, 5, dtype=torch.float64)
    field = torch.randn(2, 4, 6, 3, dtype=torch.float64).permute(order).contiguous()
    x = field.permute(torch.tensor(order).argsort().tolist()).requires_grad_()
    assert x.shape == (2, 4, 6, 3)
    mixed, expected = mix_points(layer, x), layer(x)
    assert torch.allclose(mixed, expected, atol=1e-14)
    if order != (0, 1, 2, 3):
        assert mixed.permute(order).is_contiguous()  # left as it came
    inputs, above = (x, layer.weight, layer.bias), torch.randn_like(mixed)
    for mine, theirs in zip(*(torch.autograd.grad(y, inputs, above) for y in (mixed, expected)), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-13)


def test_gating_is_glu_over_channels() -> None:
    x = torch.randn(6, 2, 4, 3, dtype=torch.float64).permute(1, 2, 3, 0).requires_grad_()
    assert torch.equal(gate(x), glu(x))
    assert torch.autograd.gradcheck(gate, (x,))
