"""The transforms and products behind the spectral layers, against independent definitions."""

from typing import Any

import pytest
import torch
from pde.models.grid import GridPlane
from pde.models.monarch_axis import MonarchAxis
from pde.models.plane import Plane
from pde.models.pointwise import TwoLayers, mix_points
from pde.models.product import complex_product
from pde.models.transform import Axis
from torch import nn

from monarch_core import grid_dft


def modes_by_fft(field: torch.Tensor, m: int) -> torch.Tensor:
    """(mode, channel, batch) with mode = k * 2m + l, by torch.fft."""
    spectrum = torch.fft.rfft2(field, dim=(1, 2), norm="ortho")
    kept = torch.cat((spectrum[:, :m, :m], spectrum[:, -m:, :m]), dim=1)
    return kept.permute(2, 1, 3, 0).flatten(0, 1)


@pytest.mark.parametrize("make", [Plane, GridPlane])
def test_plane_analysis_is_the_truncated_fft(make: type[Plane] | type[GridPlane]) -> None:
    field = torch.randn(3, 32, 32, 2)
    expected = modes_by_fft(field, 5)
    assert torch.allclose(make(32, 5).analyse(field), expected, atol=1e-5)


def test_grid_plane_is_the_grid_monarch_operator_of_the_core() -> None:
    field = torch.randn(2, 16, 16, 1)
    keep = ([*range(4), *range(-4, 0)], range(4))
    core = grid_dft((16, 16), norm="ortho", keep=keep)(field[..., 0])
    mine = GridPlane(16, 4).analyse(field)
    assert torch.allclose(mine, core.permute(2, 1, 0).reshape(-1, 1, 2), atol=1e-5)


@pytest.mark.parametrize("make", [Plane, GridPlane])
def test_synthesis_undoes_analysis_of_what_is_kept(make: type[Plane] | type[GridPlane]) -> None:
    plane = make(32, 5)
    t = torch.arange(32) * 2 * torch.pi / 32
    waves = [torch.cos(3 * t[:, None] - 2 * t), torch.sin(-4 * t[:, None] + 4 * t), torch.ones(32, 32)]
    field = torch.stack(waves)[..., None]
    assert torch.allclose(plane.synthesise(plane.analyse(field)), field, atol=1e-5)


def test_groups_of_channels_use_their_own_transforms() -> None:
    axis = Axis(16, 3, signed=False, learn=True, groups=2)
    plane = Plane.of(Axis(16, 3, signed=True, learn=True, groups=2), axis)
    field = torch.randn(1, 16, 16, 4)
    before = plane.analyse(field)
    with torch.no_grad():
        axis.forward_change[1] += 1.0
    after = plane.analyse(field)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2:], after[:, 2:])


@pytest.mark.parametrize("points", [48, 64])
def test_resampled_transform_sees_the_same_modes(points: int) -> None:
    axis = Axis(32, 4, signed=False, learn=True)
    with torch.no_grad():  # a deviation that is smooth along the axis, as a trained one is
        smooth = torch.cos(2 * torch.pi * 3 * torch.arange(32) / 32)
        axis.forward_change += 0.05 * smooth[:, None, None] * torch.randn(4, 2)
    finer = axis.resampled(points)

    def modes(axis: Axis, n: int) -> torch.Tensor:
        t = torch.arange(n) / n
        field = torch.sin(2 * torch.pi * 2 * t) + 0.5 * torch.cos(2 * torch.pi * 3 * t)
        return field @ axis.matrices()[0][0].flatten(1) * n**-0.5

    assert torch.allclose(modes(axis, 32), modes(finer, points), atol=1e-5)


def test_complex_product_has_the_right_derivatives() -> None:
    A = torch.randn(2, 3, 4, dtype=torch.complex128, requires_grad=True)
    B = torch.randn(2, 4, 2, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(complex_product, (A, B))


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_tiled_layers_have_the_right_derivatives(activation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pde.models.pointwise.ROWS_AT_ONCE", 3)  # a last piece that is not full
    shapes = ((8, 4), (5, 4), (5,), (2, 5), (2,))
    arguments = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(lambda *given: TwoLayers.apply(*given, activation), arguments)


@pytest.mark.parametrize("start", ["dft", "dct", "dst"])
@pytest.mark.parametrize("make", [Axis, MonarchAxis])
@pytest.mark.parametrize(("n", "out"), [(32, 16), (16, 24)])
def test_rectangular_axis_resamples_what_its_frequencies_hold(
    make: Any, start: Any, n: int, out: int
) -> None:
    held = {
        "dft": lambda t: 0.3 + torch.cos(2 * torch.pi * t) + torch.sin(6 * torch.pi * t),
        "dct": lambda t: 0.3 + torch.cos(torch.pi * t) + torch.cos(5 * torch.pi * t),
        "dst": lambda t: torch.sin(torch.pi * t) + torch.sin(5 * torch.pi * t),
    }[start]

    def points(count: int) -> torch.Tensor:
        # Cosines and sines belong to points in the middle of cells, and Fourier series to points at their beginning.
        return (torch.arange(count) + (0.0 if start == "dft" else 0.5)) / count

    axis = make(n, 4, signed=False, start=start, out=out)
    forward, back = (torch.view_as_complex(matrix[0].contiguous()) for matrix in axis.matrices())
    there = held(points(n)).to(forward.dtype) @ forward
    assert torch.allclose((there @ back).real, held(points(out)), atol=1e-5)


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
