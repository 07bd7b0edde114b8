"""The models: published sizes, no idle part, and the Monarch operator's start at its Fourier twin."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import pde.models
from lab.errors import UserError
from monarch_core import real_arithmetic
from pde.models import MODELS, build
from pde.models.fno import FNO
from pde.models.mno import mno
from pde.models.parts.model import Model
from pde.models.parts.spectral import SpectralMap

SMALL = {
    "lfno": {"width": 4, "modes": 3},
    "mno": {"twin": "fno", "width": 4, "modes": 3, "groups": 2},
    "fno": {"width": 4, "modes": 3, "batch_norm": True},
    "ffno": {"width": 4, "modes": 3},
    "sfno": {"width": 4, "modes": 3},
    "resnet": {"width": 4},
}
"""Options that make the spectral models quick; the others have one size."""

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, SMALL.get(name, {})) for name in MODELS),
    ("mno", {"twin": "latent", "width": 4, "modes": 3, "groups": 2}),
    ("mno", {"twin": "latent", "form": "monarch", "width": 4, "modes": 3, "shared": True}),
    ("mno", {"twin": "latent", "form": "grid", "width": 4, "modes": 3}),
    ("mno", {"twin": "ffno", "width": 4, "modes": 3, "groups": 1}),
    ("mno", {"learn": ("per-frequency", "fixed"), "shear": True, "width": 4, "modes": (3, 4)}),
    ("mno", {"twin": "fno", "learn": ("fixed", "per-frequency"), "shear": True, "width": 4, "modes": 3}),
    ("mno", {"twin": "fno", "form": "grid", "width": 4, "modes": 3, "groups": 1}),
    ("mno", {"twin": "fno", "form": "monarch", "width": 4, "modes": 3, "groups": 2}),
    ("mno", {"twin": "ffno", "form": "monarch", "width": 4, "modes": 3, "groups": 1, "shared": True}),
]


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "options", "parameters"),
    [
        ("fno", {}, 926_357),
        ("fno", {"modes": 8, "batch_norm": True}, 414_517),
        ("unet", {}, 24_950_491),
        ("tfnet", {}, 7_451_724),
    ],
)
def test_parameters_are_those_published(name: str, options: dict[str, Any], parameters: int) -> None:
    assert count(build(name, 10, 64, **options)) == parameters


def test_resnet_is_within_3_percent_of_the_published_size() -> None:
    assert abs(count(build("resnet", 10, 64)) / 266_641 - 1) < 0.03


def convolutions(model: nn.Module) -> int:
    return sum(isinstance(module, nn.Conv2d) for module in model.modules())


def test_resnet_has_18_convolutions() -> None:
    assert convolutions(build("resnet", 10, 64)) == 18


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_every_parameter_receives_gradient_and_changes_the_output(name: str, options: dict[str, Any]) -> None:
    resolution = 32 if name in ("unet", "tfnet", "resnet") else 16
    model = build(name, 3, resolution, **options)
    x = torch.randn(4, resolution, resolution, 3)
    # Zero biases and zero gains hide gradients; a small disturbance of everything shows them.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    # In training mode batch norm takes the mean away, and with it all effect of a bias before it.
    model.eval()
    before = model(x)
    before.square().mean().backward()
    for label, parameter in model.named_parameters():
        assert parameter.grad is not None, label
        assert parameter.grad.abs().max() > 0, label
        with torch.no_grad():
            kept = parameter.clone()
            parameter += 0.5 * torch.randn_like(parameter)
            assert not torch.equal(model(x), before), label
            parameter.copy_(kept)


@pytest.mark.parametrize("form", ["separable", "monarch", "grid"])
@pytest.mark.parametrize("twin", ["latent", "fno", "ffno"])
@pytest.mark.parametrize("groups", [1, 4])
def test_mno_at_the_dft_equals_its_fourier_twin(twin: Any, form: Any, groups: int) -> None:
    if form == "grid" and (twin == "ffno" or groups > 1):
        pytest.skip("the grid form is of a plane, without groups")
    fourier = build("lfno" if twin == "latent" else twin, 2, 64, width=8, modes=5)
    enlarge_spectral_maps(fourier)
    monarch = build("mno", 2, 64, width=8, modes=5, twin=twin, form=form, groups=groups)
    monarch.load_state_dict(fourier.state_dict(), strict=False)
    x = torch.randn(2, 64, 64, 2)
    expected = fourier(x)
    assert (monarch(x) - expected).norm() <= 2e-6 * expected.norm()
    assert monarch.transform_parameters()
    assert not fourier.transform_parameters()


def enlarge_spectral_maps(model: nn.Module) -> None:
    """The latent operator's begin so small that its output would hide what is wrong with them."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, SpectralMap):
                module.weight *= 20


def reference_fno(model: FNO, frames: Tensor) -> Tensor:
    """FNO as its authors wrote it: rfft2, corners, irfft2."""
    n, m = frames.shape[1], 12
    line = torch.linspace(0, 1, n, dtype=frames.dtype)
    grid = torch.stack(torch.meshgrid(line, line, indexing="ij"), -1).expand(len(frames), n, n, 2)
    x = model.lift(torch.cat((frames, grid), -1)).permute(0, 3, 1, 2)
    for number, layer in enumerate(model.layers):
        spectrum = torch.fft.rfft2(x)
        weight = torch.view_as_complex(layer.spectral.weight).unflatten(0, (m, 2 * m))
        out = torch.zeros_like(spectrum)
        out[:, :, :m, :m] = torch.einsum("bixy,yxoi->boxy", spectrum[:, :, :m, :m], weight[:, :m])
        out[:, :, -m:, :m] = torch.einsum("bixy,yxoi->boxy", spectrum[:, :, -m:, :m], weight[:, m:])
        x = torch.fft.irfft2(out, s=(n, n)) + layer.pointwise(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = torch.nn.functional.gelu(x) if number < len(model.layers) - 1 else x
    return model.project(x.permute(0, 2, 3, 1))


def test_fno_equals_the_published_formula() -> None:
    model = FNO(10, 64)
    frames = torch.randn(2, 64, 64, 10)
    expected = reference_fno(model, frames)
    assert (model(frames) - expected).norm() <= 2e-6 * expected.norm()


@pytest.mark.parametrize("start", ["dct", "dst", "random"])
def test_other_starts_differ_from_the_dft_and_train(start: Any) -> None:
    model = mno(1, 16, twin="fno", start=start, width=4, modes=3, groups=2)
    fourier = mno(1, 16, twin="fno", width=4, modes=3, groups=2)
    fourier.load_state_dict(model.state_dict(), strict=False)
    x = torch.randn(2, 16, 16, 1)
    out = model(x)
    assert (out - fourier(x)).norm() > 1e-3 * out.norm()
    out.square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.transform_parameters())


def test_shared_transforms_are_one_set() -> None:
    apart, shared = (mno(1, 16, twin="fno", width=5, modes=3, shared=shared) for shared in (False, True))
    assert len(apart.transform_parameters()) == 4 * len(shared.transform_parameters())


def disturbed(model: Model) -> Model:
    """With spectral maps that matter and transforms away from their start."""
    enlarge_spectral_maps(model)
    with torch.no_grad():
        for parameter in model.transform_parameters():
            parameter += 0.02 * torch.randn_like(parameter)
    return model


@pytest.mark.parametrize(("name", "options"), [v for v in VARIANTS if v[0] in ("fno", "lfno", "mno", "sfno")])
def test_training_step_in_real_arithmetic_forms_no_complex_tensor_and_agrees(
    name: str, options: dict[str, Any]
) -> None:
    model = disturbed(build(name, 2, 16, **options)).double()
    x = torch.randn(2, 16, 16, 2, dtype=torch.float64)
    expected = model(x)
    gradients = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
    with real_arithmetic(), NoComplexTensors():
        made = model(x)
        again = torch.autograd.grad(made.square().sum(), list(model.parameters()))
    assert (made - expected).norm() < 1e-11 * expected.norm()
    for one, other in zip(again, gradients, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-10 * float(other.abs().max()) + 1e-14)


class NoComplexTensors(TorchDispatchMode):
    """Any operation that takes or makes a complex tensor is an error."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, made)):
            assert not (isinstance(leaf, Tensor) and leaf.is_complex()), f"{func} is complex"
        return made


@pytest.mark.parametrize("name", ["fno", "lfno", "mno", "sfno"])
def test_spectral_models_are_exported_with_a_free_batch_size(name: str) -> None:
    model = build(name, 1, 16, modes=3, width=4).eval()
    batch = torch.export.Dim("batch", min=2, max=64)
    exported = torch.export.export(model, (torch.randn(3, 16, 16, 1),), dynamic_shapes=({0: batch},))
    x = torch.randn(5, 16, 16, 1)
    assert torch.allclose(exported.module()(x), model(x), atol=1e-5)
    assert not any("complex" in str(node.target) for node in exported.graph.nodes)


@pytest.mark.parametrize("name", ["fno", "lfno", "mno", "ffno", "sfno"])
def test_spectral_models_run_in_bfloat16(name: str) -> None:
    model = build(name, 1, 16, modes=3, width=4)
    x = torch.randn(2, 16, 16, 1)
    with torch.autocast("cpu", torch.bfloat16):
        made = model(x)
        made.float().square().mean().backward()
    assert (made.float() - model(x)).norm() < 0.05 * model(x).norm()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_sheared_operator_commutes_with_shifts_along_the_antidiagonal() -> None:
    """What is learned acts along s = x + y, and the DFT along y keeps the symmetry; coordinates would break it."""
    model = disturbed(
        build("mno", 1, 16, learn=("per-frequency", "fixed"), shear=True, width=4, modes=3)
    ).double()
    with torch.no_grad():
        model.lift.weight[:, 1] = 0  # y
        model.skip.weight[:, -2:] = 0  # x and y
    x = torch.randn(2, 16, 16, 1, dtype=torch.float64)
    shifted, expected = (each.roll((6, -6), dims=(1, 2)) for each in (x, model(x)))
    assert (model(shifted) - expected).norm() < 1e-7 * expected.norm()  # the tables are those of float32


def test_what_learns_is_a_choice_for_each_axis() -> None:
    counts = {
        learn: sum(p.numel() for p in mno(1, 16, learn=learn, width=4, modes=3).transform_parameters())
        for learn in (("fixed", "fixed"), ("matrix", "fixed"), ("fixed", "matrix"), ("matrix", "matrix"))
    }
    assert counts["fixed", "fixed"] == 0
    assert counts["matrix", "fixed"] + counts["fixed", "matrix"] == counts["matrix", "matrix"]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_counts_its_operations(name: str) -> None:
    assert build(name, 1, 32, **SMALL.get(name, {})).flops() > 0


def test_models_leave_transform_arithmetic_to_the_core() -> None:
    for path in Path(pde.models.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert not any(word in text for word in ("torch.fft", "as_complex", "torch.complex")), path


def test_pointwise_maps_are_channels_last_linear_maps() -> None:
    for name in ("fno", "ffno", "mno"):
        model = build(name, 1, 64)
        assert convolutions(model) == 0
        assert any(isinstance(module, nn.Linear) for module in model.modules())


def test_unknown_model_is_refused() -> None:
    with pytest.raises(UserError, match="there is no model 'fon'"):
        build("fon", 1, 64)


def test_groups_must_share_the_channels_out() -> None:
    with pytest.raises(UserError, match="20 channels cannot be shared out among 3 groups"):
        build("mno", 1, 64, groups=3)


def test_too_many_modes_are_refused() -> None:
    with pytest.raises(UserError, match="12 modes need at least 24 points per side; there are 16"):
        build("fno", 1, 16)


def test_unet_names_the_grid_it_cannot_halve() -> None:
    with pytest.raises(UserError, match="48 is not a multiple of 32"):
        build("unet", 1, 48)


def test_layers_of_the_latent_operator_do_not_see_what_the_modes_do_not_hold() -> None:
    model = build("lfno", 1, 32, width=4, modes=3)
    t = torch.arange(32) / 32 * 2 * torch.pi
    fine = torch.cos(9 * t)[None, :, None, None] * torch.ones(1, 32, 32, 1)
    x = torch.randn(1, 32, 32, 1)
    seen = [model.encoder(field) for field in (x, x + fine)]
    assert (seen[1] - seen[0]).norm() < 1e-5 * seen[0].norm()
    assert (model(x + fine) - model(x)).abs().max() > 1e-3


def test_latent_operator_keeps_its_forecast_on_a_finer_grid() -> None:
    model = build("mno", 1, 32, width=4, modes=3)
    enlarge_spectral_maps(model)
    with torch.no_grad():
        for parameter in model.transform_parameters():
            parameter += 0.02 * torch.randn_like(parameter)
    t = torch.arange(64) / 64 * 2 * torch.pi
    field = (torch.sin(t)[:, None] * torch.cos(2 * t))[None, ..., None]
    coarse = model(field[:, ::2, ::2])
    fine = model.resampled(64)(field)
    # Learned bases are interpolated, and the coordinates' last point depends on the grid a little.
    assert (fine[:, ::2, ::2] - coarse).norm() < 0.05 * coarse.norm()
