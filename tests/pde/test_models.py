"""The models: published sizes, no idle part, the start at a fixed twin, and the way into a file and back."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, pad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import pde.models
from data.fields.geometry import Box, Sphere
from data.fields.layout import Grid
from lab import weights
from lab.errors import UserError
from monarch_core import real_arithmetic
from pde.config import TrainConfig
from pde.experiment import make_training
from pde.models import MODELS, build, comparison
from pde.models.fno import FNO
from pde.models.options import Parity
from pde.models.parts.model import Model
from pde.models.parts.spectral import SpectralMap
from pde.models.parts.splines import Degree
from pde.models.parts.transport import Plane, Transport
from pde.predictor import load
from pde.problems import PROBLEMS
from pde.sources import Samples

SMALL = {
    "lfno": {"width": 4, "modes": 3},
    "mno": {"twin": "fno", "width": 4, "modes": 3, "groups": 2},
    "fno": {"width": 4, "modes": 3, "batch_norm": True},
    "ffno": {"width": 4, "modes": 3},
    "sfno": {"width": 4, "modes": 3},
    "resnet": {"width": 4},
}
"""Options that make the spectral models quick; the others have one size."""

CARRYING: list[tuple[str, dict[str, Any]]] = [
    ("mno", {"width": 4, "modes": 3, "transport": True, "coordinates": "geometry"}),
    (
        "mno",
        {
            "width": 4,
            "modes": 3,
            "form": "per-frequency",
            "shear": True,
            "cells": True,
            "transport": True,
            "coordinates": "diagonal",
        },
    ),
    ("lfno", {"width": 4, "modes": 3, "transport": True}),
    ("fno", {"width": 4, "modes": 3, "transport": True}),
    ("ffno", {"width": 4, "modes": 3, "transport": True}),
    ("sfno", {"width": 4, "modes": 3, "transport": True, "coordinates": "geometry"}),
]
"""Models that carry their fields, one for each way to do so."""

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, SMALL.get(name, {})) for name in MODELS),
    *CARRYING,
    ("mno", {"twin": "latent", "width": 4, "modes": 3, "groups": 2}),
    ("mno", {"twin": "latent", "form": "monarch", "width": 4, "modes": 3, "shared": True}),
    ("mno", {"twin": "latent", "form": "grid", "cells": True, "width": 4, "modes": 3}),
    ("mno", {"twin": "ffno", "width": 4, "modes": 3, "groups": 1}),
    ("mno", {"twin": "fno", "form": "grid", "width": 4, "modes": 3, "groups": 1}),
    ("mno", {"twin": "fno", "form": "monarch", "width": 4, "modes": 3, "groups": 2}),
    ("mno", {"twin": "ffno", "form": "monarch", "width": 4, "modes": 3, "groups": 1, "shared": True}),
    ("mno", {"learn_x": "per-frequency", "learn_y": "fixed", "shear": True, "width": 4, "modes": 3}),
    (
        "mno",
        {
            "twin": "fno",
            "learn_x": "fixed",
            "learn_y": "per-frequency",
            "shear": True,
            "width": 4,
            "modes": 3,
        },
    ),
]


def grid_for(name: str, points: int) -> Grid:
    """A sphere for models that only work there, a periodic box for the others."""
    sphere = getattr(MODELS[name], "sphere", False)
    return Grid.of(Sphere(), points, 2 * points) if sphere else Grid.of(Box(), points)


def following(model: Model, frames: Tensor) -> Tensor:
    """What is carried and what is new."""
    carried, new = model.step(frames)
    return carried + new


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "options", "parameters"),
    [
        ("fno", {"coordinates": "plain", "transport": False}, 926_357),
        ("fno", {"modes": 8, "batch_norm": True, "coordinates": "plain", "transport": False}, 414_517),
        ("unet", {}, 24_950_491),
        ("tfnet", {}, 7_451_724),
    ],
)
def test_parameters_are_those_published(name: str, options: dict[str, Any], parameters: int) -> None:
    config = TrainConfig(model=name, recipe="fno", options=options)  # after the problem's design
    assert count(build(name, 10, 64, **config.options)) == parameters


@pytest.mark.parametrize(
    ("name", "options", "parameters"),
    [
        ("mno", {"form": "separable", "shear": False, "modes_y": 12, "cells": False}, 1_153_189),
        ("lfno", {"shear": False, "modes_y": 12, "cells": False}, 1_120_933),
        ("ffno", {}, 86_337),
    ],
)
def test_without_the_design_models_are_what_they_were(
    name: str, options: dict[str, Any], parameters: int
) -> None:
    bare = {"coordinates": "plain", "transport": False, **options}
    config = TrainConfig(model=name, options=bare)
    model = build(name, 1, 64, **config.options)
    assert (count(model), model.transports) == (parameters, False)
    x = torch.randn(2, 64, 64, 1)
    last, _ = model.step(x)
    assert torch.equal(last, x)


def test_resnet_is_within_3_percent_of_the_published_size() -> None:
    assert abs(count(build("resnet", 10, 64)) / 266_641 - 1) < 0.03


def convolutions(model: nn.Module) -> int:
    return sum(isinstance(module, nn.Conv2d) for module in model.modules())


def test_resnet_has_18_convolutions() -> None:
    assert convolutions(build("resnet", 10, 64)) == 18


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_every_parameter_receives_gradient_and_changes_the_output(name: str, options: dict[str, Any]) -> None:
    grid = grid_for(name, 32 if name in ("unet", "tfnet", "resnet") else 16)
    model = build(name, 3, grid, **options)
    x = torch.randn(4, *grid.resolution, 3)
    # Zero biases and zero gains hide gradients; a small disturbance of everything shows them.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    # In training mode batch norm takes the mean away, and with it all effect of a bias before it.
    model.eval()
    before = following(model, x)
    before.square().mean().backward()
    for label, parameter in model.named_parameters():
        assert parameter.grad is not None, label
        assert parameter.grad.abs().max() > 0, label
        with torch.no_grad():
            kept = parameter.clone()
            parameter += 0.5 * torch.randn_like(parameter)
            assert not torch.equal(following(model, x), before), label
            parameter.copy_(kept)


@pytest.mark.parametrize("form", ["separable", "monarch", "grid"])
@pytest.mark.parametrize("twin", ["latent", "fno", "ffno"])
@pytest.mark.parametrize("groups", [1, 4])
def test_mno_at_the_dft_equals_its_fourier_twin(twin: Any, form: Any, groups: int) -> None:
    if form == "grid" and (twin == "ffno" or groups > 1):
        pytest.skip("the grid form transforms planes, without groups")
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
    n, m = frames.shape[1], model.layers[0].spectral.plane.modes[0]
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
    model = build("mno", 1, 16, twin="fno", start=start, width=4, modes=3, groups=2)
    fourier = build("mno", 1, 16, twin="fno", width=4, modes=3, groups=2)
    fourier.load_state_dict(model.state_dict(), strict=False)
    x = torch.randn(2, 16, 16, 1)
    out = model(x)
    assert (out - fourier(x)).norm() > 1e-3 * out.norm()
    out.square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.transform_parameters())


def test_shared_transforms_are_one_set() -> None:
    apart, shared = (
        build("mno", 1, 16, twin="fno", width=5, modes=3, shared=shared) for shared in (False, True)
    )
    assert len(apart.transform_parameters()) == 4 * len(shared.transform_parameters())


def disturbed(model: Model) -> Model:
    """With spectral maps that matter, and transforms and filters away from their start."""
    enlarge_spectral_maps(model)
    filters = [module.filters for module in model.modules() if isinstance(module, Transport)]
    with torch.no_grad():
        for parameter in (*model.transform_parameters(), *filters):
            parameter += 0.02 * torch.randn_like(parameter)
    return model


class NoComplexTensors(TorchDispatchMode):
    """Any operation that takes or makes a complex tensor is an error."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, made)):
            assert not (isinstance(leaf, Tensor) and leaf.is_complex()), f"{func} is complex"
        return made


# Double precision from the start: matrices made in single precision would not agree with an FFT.
@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize(("name", "options"), [v for v in VARIANTS if v[0] in ("fno", "lfno", "mno", "sfno")])
def test_training_step_in_real_arithmetic_forms_no_complex_tensor_and_agrees(
    name: str, options: dict[str, Any]
) -> None:
    grid = grid_for(name, 16)
    model = disturbed(build(name, 2, grid, **options))
    x = torch.randn(2, *grid.resolution, 2)
    expected = following(model, x)
    gradients = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
    with real_arithmetic(), NoComplexTensors():
        made = following(model, x)
        again = torch.autograd.grad(made.square().sum(), list(model.parameters()))
    assert (made - expected).norm() < 1e-11 * expected.norm()
    for one, other in zip(again, gradients, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-10 * float(other.abs().max()) + 1e-13)


@pytest.mark.parametrize(
    ("name", "options"), [*((name, {}) for name in ("fno", "lfno", "mno", "sfno")), *CARRYING]
)
def test_spectral_models_are_exported_with_a_free_batch_size(name: str, options: dict[str, Any]) -> None:
    grid = grid_for(name, 16)
    model = build(name, 1, grid, **{"modes": 3, "width": 4, **options}).eval()
    batch = torch.export.Dim("batch", min=2, max=64)
    example = (torch.randn(3, *grid.resolution, 1),)
    exported = torch.export.export(model, example, dynamic_shapes=({0: batch},))
    x = torch.randn(5, *grid.resolution, 1)
    assert torch.allclose(exported.module()(x), model(x), atol=1e-5)
    assert not any("complex" in str(node.target) for node in exported.graph.nodes)


@pytest.mark.parametrize("name", ["fno", "lfno", "mno", "ffno", "sfno"])
def test_spectral_models_run_in_bfloat16(name: str) -> None:
    grid = grid_for(name, 16)
    model = build(name, 1, grid, modes=3, width=4)
    x = torch.randn(2, *grid.resolution, 1)
    with torch.autocast("cpu", torch.bfloat16):
        made = model(x)
        made.float().square().mean().backward()
    assert (made.float() - model(x)).norm() < 0.05 * model(x).norm()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("twin", ["latent", "fno"])
def test_the_design_for_navier_stokes_commutes_with_shifts_along_the_antidiagonal(twin: str) -> None:
    """What is learned acts along s = x + y; the DFT along y, the coordinates and transport keep the symmetry."""
    options = TrainConfig(options={"twin": twin, "width": 4, "modes": 3}).options
    assert (options["form"], options["shear"], options["transport"]) == ("per-frequency", True, True)
    model = disturbed(build("mno", 1, 16, **options)).double()
    x = torch.randn(2, 16, 16, 1, dtype=torch.float64)
    for made, of_shifted in zip(model.step(x), model.step(shifted(x)), strict=True):
        assert (of_shifted - shifted(made)).norm() < 1e-6 * made.norm()  # the tables are those of float32
    plain = disturbed(build("mno", 1, 16, **{**options, "coordinates": "plain"})).double()
    made, of_shifted = plain(x), plain(shifted(x))
    assert (of_shifted - shifted(made)).norm() > 1e-3 * made.norm()


def shifted(field: Tensor) -> Tensor:
    return field.roll((6, -6), dims=(1, 2))


def test_what_learns_is_a_choice_for_each_axis() -> None:
    def learned(x: str, y: str) -> int:
        model = build("mno", 1, 16, learn_x=x, learn_y=y, width=4, modes=3)
        return sum(parameter.numel() for parameter in model.transform_parameters())

    assert learned("fixed", "fixed") == 0
    assert learned("matrix", "fixed") + learned("fixed", "matrix") == learned("matrix", "matrix")


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
    disturbed(model)
    t = torch.arange(64) / 64 * 2 * torch.pi
    field = (torch.sin(t)[:, None] * torch.cos(2 * t))[None, ..., None]
    coarse = model(field[:, ::2, ::2])
    fine = model.resampled(64)(field)
    # Learned bases are interpolated, and the coordinates' last point depends on the grid a little.
    assert (fine[:, ::2, ::2] - coarse).norm() < 0.05 * coarse.norm()


@pytest.mark.parametrize(("degree", "bound"), [(1, 0.02), (3, 3e-3)])
def test_a_designed_operator_takes_the_same_step_on_a_finer_grid(
    degree: Degree, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for velocities between points, by linear splines; by cubic ones it is much closer.

    What is left is of waves that the way makes and only the finer grid holds: its last filter knows them apart.
    """

    def surfaces(resolution: tuple[int, int], geometry: Box, parity: Parity) -> tuple[Plane, Plane]:
        return Plane(resolution, geometry, degree=degree), Plane(resolution, geometry, parity)

    monkeypatch.setattr("pde.models.parts.transport.surfaces", surfaces)
    torch.manual_seed(0)
    options = TrainConfig(model="lfno", options={"width": 4, "modes": 3}).options
    model = disturbed(build("lfno", 1, 32, **options)).double()
    t = torch.arange(64, dtype=torch.float64) / 64 * 2 * torch.pi
    field = (torch.sin(t)[:, None] * torch.cos(2 * t))[None, ..., None]
    coarse = model.step(field[:, ::2, ::2])
    assert (coarse[0] - field[:, ::2, ::2]).norm() > 0.1 * field.norm() / 2  # it is carried somewhere
    fine = model.resampled(64).step(field)
    for here, there in zip(coarse, fine, strict=True):
        assert (there[:, ::2, ::2] - here).norm() < bound * here.norm()


STARTS = [("dft", (16, 16)), ("dft", (16, 24)), ("dft", (24, 16)), ("dct", (16, 24)), ("dst", (16, 24))]


def grid_of_start(start: str, shape: tuple[int, int]) -> Grid:
    geometry = {"dft": Box(), "sht": Sphere()}.get(start, Box("walls", "walls"))
    return Grid.of(geometry, *shape)


@pytest.mark.parametrize(("start", "shape"), [*STARTS, ("sht", (16, 32)), ("sht", (20, 24))])
@pytest.mark.parametrize("form", ["separable", "grid"])
@pytest.mark.parametrize(("twin", "architecture"), [("fno", "fno"), ("lfno", "latent")])
def test_monarch_equals_the_fixed_transform_when_it_starts(
    start: Any, shape: Any, form: Any, twin: Any, architecture: Any
) -> None:
    if start == "sht" and form != "grid":
        pytest.skip("the spherical transform has the grid form alone")
    grid = grid_of_start(start, shape)
    fixed = build(twin, 2, grid, 3, width=4, modes=4, start=start)
    monarch = build("mno", 2, grid, 3, width=4, modes=4, start=start, form=form, twin=architecture)
    enlarge_spectral_maps(fixed)
    monarch.load_state_dict(fixed.state_dict(), strict=False)
    x = torch.randn(2, *shape, 2)
    expected = fixed(x)
    assert (monarch(x) - expected).norm() <= 2e-6 * expected.norm()


def test_four_starts_have_the_same_parameters() -> None:
    grid = Grid.of(Sphere(), 16, 32)
    models = [
        build("mno", 1, grid, form="grid", start=start, modes=4, latent=12)
        for start in ("dft", "dct", "dst", "sht")
    ]
    shapes = [{name: tensor.shape for name, tensor in model.state_dict().items()} for model in models]
    assert all(each == shapes[0] for each in shapes)


def test_fixed_transforms_have_no_parameters() -> None:
    for name in ("fno", "lfno"):
        for start in ("dft", "dct", "dst", "sht"):
            assert not build(name, 1, Grid.of(Sphere(), 16, 32), modes=4, start=start).transform_parameters()


def test_padding_is_a_larger_grid_whose_rest_is_zero() -> None:
    padded = build("fno", 1, Grid.of(Box("walls", "periodic"), 16, 24), width=4, modes=3, padding=0.25)
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
    sphere = Grid.of(Sphere(), 64, 128)
    with pytest.raises(UserError, match="up to degree 34; 32 latitudes resolve 31"):
        build("mno", 1, sphere, form="grid", start="sht", latent=32)
    with pytest.raises(UserError, match="begins along y, the longitudes"):
        build("mno", 1, sphere, form="grid", start="sht", learn_x="fixed", learn_y="per-frequency")
    with pytest.raises(UserError, match="add --form grid"):
        build("mno", 1, sphere, start="sht", twin="fno", form="separable")


@pytest.mark.parametrize("name", MODELS)
def test_every_entry_builds_trains_and_comes_back_from_its_file(name: str, tmp_path: Any) -> None:
    """One optimiser step, then the header of the weights file alone rebuilds the same forecasts."""
    grid = grid_for(name, 32)
    problem: Any = "shallow-water" if isinstance(grid.geometry, Sphere) else "navier-stokes"
    fields, first = (3, 1) if problem == "shallow-water" else (1, 10)
    config = TrainConfig(problem=problem, model=name, options=SMALL.get(name, {}))
    samples = Samples(*torch.randn(2, *grid.resolution, first + 3, fields).split([first, 3], dim=3))
    training, data = make_training(config, samples, grid)
    optimizer = torch.optim.AdamW(list(training.parameter_groups()), lr=1e-2)
    before = [parameter.detach().clone() for parameter in training.model.parameters()]
    batch = [torch.stack(part) for part in zip(*(data[i] for i in range(2)), strict=True)]
    training.training_step(batch, 0).backward()
    optimizer.step()
    changed = zip(before, training.model.parameters(), strict=True)
    assert any(not torch.equal(old, new) for old, new in changed)
    weights.save(tmp_path / "weights.safetensors", training.model, training.header())
    again = load(tmp_path / "weights.safetensors")
    training.model.eval()
    assert torch.equal(again.predict(samples.given, 2), training.model.predict(samples.given, 2))
    assert (again.net.flops(), type(again.net)) == (training.model.net.flops(), type(training.model.net))
    assert again.net.flops() > math.prod(grid.resolution)


def test_a_header_tells_defaults_and_the_grid(tmp_path: Any) -> None:
    config = TrainConfig(problem="shallow-water", model="fno", options={"padding": 0.25, "modes": 3})
    training, _ = make_training(config, Samples(*torch.randn(2, 2, 16, 32, 1, 3)), Grid.of(Sphere(), 16, 32))
    header = training.header()
    assert header["options"]["start"] == "dft"  # defaults are written down too
    assert header["geometry"] == {"kind": "sphere", "latitudes": "legendre-gauss"}
    assert (header["in_channels"], header["fields"], header["resolution"]) == (3, 3, [16, 32])
    assert training.model.net.padding == (4, 0)  # beyond the pole; longitudes are periodic


ROWS = {
    "navier-stokes": "mno lfno fno fno-transport ffno unet tfnet resnet",
    "darcy": "fno fno-padded lfno-dft lfno-dst lfno-dct mno-dft mno-dst mno-dct mno-swap",
    "burgers-walls": "fno fno-padded fno-transport lfno-dft lfno-dst lfno-dct mno-dft mno-dst mno-dct mno-swap",
    "shallow-water": "fno fno-padded fno-transport sfno lfno-dft lfno-sht mno-dft mno-sht mno-swap",
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_geometry_has_its_rows_and_each_of_them_builds(problem: Any) -> None:
    rows = comparison(PROBLEMS[problem].geometry, PROBLEMS[problem].static)
    assert set(rows) == set(ROWS[problem].split())
    for name, (model, options) in rows.items():
        assert TrainConfig(problem=problem, model=model, options=options).model == name.split("-")[0]


@pytest.mark.parametrize("name", [name for name, entry in MODELS.items() if entry.suits(Sphere())])
def test_every_model_that_suits_the_sphere_works_there(name: str) -> None:
    net = build(name, 1, Grid.of(Sphere("equiangular"), 32, 64), **SMALL.get(name, {}))
    assert net(torch.randn(1, 32, 64, 1)).shape == (1, 32, 64, 1)
