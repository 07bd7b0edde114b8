"""Models that begin at other transforms: cosines, sines and the harmonics of a sphere."""

from typing import Any

import pytest
import torch
from torch.nn.functional import gelu, pad

from lab.errors import UserError
from pde.models import build
from pde.models.fno import FNO
from pde.models.lfno import LFNO
from pde.models.parts.spectral import SpectralMap

STARTS = [("dft", (16, 16)), ("dft", (16, 24)), ("dft", (24, 16)), ("dct", (16, 24)), ("dst", (16, 24))]


@pytest.mark.parametrize(("start", "shape"), [*STARTS, ("sht", (16, 32)), ("sht", (20, 24))])
@pytest.mark.parametrize("form", ["separable", "grid"])
@pytest.mark.parametrize(("twin", "architecture"), [("fno", "fno"), ("lfno", "latent")])
def test_monarch_equals_the_fixed_transform_when_it_starts(
    start: Any, shape: Any, form: Any, twin: Any, architecture: Any
) -> None:
    if start == "sht" and form != "grid":
        pytest.skip("the spherical transform has the grid form alone")
    fixed = build(twin, 2, shape, 3, width=4, modes=4, start=start)
    monarch = build("mno", 2, shape, 3, width=4, modes=4, start=start, form=form, twin=architecture)
    with torch.no_grad():
        for module in fixed.modules():
            if isinstance(module, SpectralMap):
                module.weight *= 20  # they begin so small that the output would hide what is wrong with them
    monarch.load_state_dict(fixed.state_dict(), strict=False)
    x = torch.randn(2, *shape, 2)
    expected = fixed(x)
    assert (monarch(x) - expected).norm() <= 2e-6 * expected.norm()


def test_four_starts_have_the_same_parameters() -> None:
    models = [
        build("mno", 1, (16, 32), form="grid", start=start, modes=4, latent=12)
        for start in ("dft", "dct", "dst", "sht")
    ]
    shapes = [{name: tensor.shape for name, tensor in model.state_dict().items()} for model in models]
    assert all(each == shapes[0] for each in shapes)


def test_fixed_transforms_have_no_parameters() -> None:
    for make in (FNO, LFNO):
        for start in ("dft", "dct", "dst", "sht"):
            names = [name for name, _ in make(1, (16, 32), modes=4, start=start).named_parameters()]
            assert not any("plane" in name for name in names)


def test_padding_is_a_larger_grid_whose_rest_is_zero() -> None:
    padded = FNO(1, (16, 24), width=4, modes=3, padding=(4, 0))
    larger = FNO(1, (20, 24), width=4, modes=3)
    larger.load_state_dict(padded.state_dict())
    x = torch.randn(2, 16, 24, 1)
    coordinates = torch.meshgrid(torch.linspace(0, 1, 16), torch.linspace(0, 1, 24), indexing="ij")
    lifted = larger.lift(torch.cat((x, torch.stack(coordinates, -1).expand(2, 16, 24, 2)), -1))
    y = pad(lifted, (0, 0, 0, 0, 0, 4))
    for layer in larger.layers[:-1]:
        y = gelu(layer(y))
    expected = larger.project(larger.layers[-1](y))[:, :16]
    assert torch.allclose(padded(x), expected, atol=1e-6)
    assert padded.flops() > FNO(1, (16, 24), width=4, modes=3).flops()


def test_spherical_start_names_the_latitudes_it_needs() -> None:
    with pytest.raises(UserError, match="up to degree 34; 32 latitudes resolve 31"):
        build("mno", 1, (64, 128), form="grid", start="sht", latent=32)
    with pytest.raises(UserError, match="needs the grid form"):
        build("mno", 1, (64, 128), start="sht", twin="fno")
