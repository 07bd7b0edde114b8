"""Where the transforms begin, against scipy, torch-harmonics and the operators of the core, in both precisions."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import scipy.fft
import torch
from pde.models.grid import GridPlane
from pde.models.latent import SpectralMap
from pde.models.legendre import Latitudes, legendre_functions, quadrature
from pde.models.monarch_axis import MonarchAxis
from pde.models.plane import Plane
from torch import Tensor
from torch.nn.functional import gelu, pad
from torch_harmonics import InverseRealSHT, RealSHT

from lab.errors import UserError
from monarch_core import grid_spherical
from pde.models import build
from pde.models.fno import FNO
from pde.models.lfno import LFNO
from pde.models.sfno import Sphere

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
SHAPE, MODES = (16, 24), 5


@pytest.fixture(params=list(TOLERANCE), ids=str)
def dtype(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


def monarch_plane(shape: tuple[int, int], modes: int, *, start: Any) -> Plane:
    rows, columns = shape
    x = MonarchAxis(rows, modes, signed=True, start=start)
    return Plane.of(x, MonarchAxis(columns, modes, signed=False, start=start))


FORMS = {"separable": Plane, "monarch": monarch_plane, "grid": GridPlane}


def modes_by_scipy(field: Tensor, start: str, m: int) -> Tensor:
    """The lowest 2m x 2m cosines or sines, two neighbours along y packed into a complex number: (mode, 1, batch)."""
    transform = {"dct": scipy.fft.dctn, "dst": scipy.fft.dstn}[start]
    waves = torch.from_numpy(transform(field[..., 0].numpy(), axes=(1, 2), norm="ortho"))
    waves = waves[:, : 2 * m, : 2 * m]
    pairs = torch.complex(waves[..., 0::2], waves[..., 1::2])
    return pairs.permute(2, 1, 0).reshape(-1, 1, len(field))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", ["dct", "dst"])
def test_analysis_is_the_cosine_or_sine_transform_of_scipy(start: str, form: str, dtype: torch.dtype) -> None:
    field = torch.randn(3, *SHAPE, 1)
    made = FORMS[form](SHAPE, MODES, start=start).analyse(field)
    assert (made - modes_by_scipy(field, start, MODES)).abs().max() < TOLERANCE[dtype]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", ["dct", "dst"])
def test_synthesis_is_the_inverse_transform_of_scipy(start: str, form: str, dtype: torch.dtype) -> None:
    inverse = {"dct": scipy.fft.idctn, "dst": scipy.fft.idstn}[start]
    waves = torch.zeros(2, *SHAPE)
    waves[:, : 2 * MODES, : 2 * MODES] = torch.randn(2, 2 * MODES, 2 * MODES)
    field = torch.from_numpy(inverse(waves.numpy(), axes=(1, 2), norm="ortho"))[..., None]
    plane = FORMS[form](SHAPE, MODES, start=start)
    assert (plane.synthesise(plane.analyse(field)) - field).abs().max() < TOLERANCE[dtype]


@pytest.mark.parametrize("form", FORMS)
def test_analysis_is_the_fft_on_a_rectangle(form: str, dtype: torch.dtype) -> None:
    field = torch.randn(3, *SHAPE, 2)
    spectrum = torch.fft.rfft2(field, dim=(1, 2), norm="ortho")
    kept = torch.cat((spectrum[:, :MODES, :MODES], spectrum[:, -MODES:, :MODES]), dim=1)
    made = FORMS[form](SHAPE, MODES, start="dft").analyse(field)
    assert (made - kept.permute(2, 1, 3, 0).flatten(0, 1)).abs().max() < TOLERANCE[dtype]


def harmonics(made: Tensor, shape: tuple[int, int], m: int) -> Tensor:
    """Modes (mode, channel, batch) of the spherical start as (batch, channel, k, degree - k), in the units of others.

    Orthonormal in the mean over the grid there, in the integral over the sphere here.
    """
    rows, columns = shape
    scale = (4 * torch.pi / (rows * columns)) ** 0.5
    return made.unflatten(0, (m, 2 * m)).permute(3, 2, 0, 1) * scale


@pytest.mark.parametrize("latitudes", ["legendre-gauss", "equiangular"])
def test_spherical_start_is_the_transform_of_torch_harmonics(
    latitudes: Latitudes, dtype: torch.dtype
) -> None:
    shape, m = (16, 32), 4
    field = torch.randn(2, *shape, 3)
    plane = GridPlane(shape, m, start="sht", latitudes=latitudes)
    expected = RealSHT(*shape, lmax=3 * m - 1, mmax=m, grid=latitudes)(field.permute(0, 3, 1, 2))
    made = harmonics(plane.analyse(field), shape, m)
    for k in range(m):
        wanted = expected[..., k : k + 2 * m, k]
        assert (made[:, :, k] - wanted).abs().max() < TOLERANCE[dtype], k


@pytest.mark.parametrize("latitudes", ["legendre-gauss", "equiangular"])
def test_spherical_synthesis_is_that_of_torch_harmonics(latitudes: Latitudes, dtype: torch.dtype) -> None:
    shape, m = (16, 32), 4
    modes = torch.randn(2 * m * m, 3, 2, dtype=dtype.to_complex())
    coefficients = torch.zeros(2, 3, 3 * m - 1, m, dtype=modes.dtype)
    for k in range(m):
        coefficients[..., k : k + 2 * m, k] = harmonics(modes, shape, m)[:, :, k]
    expected = InverseRealSHT(*shape, lmax=3 * m - 1, mmax=m, grid=latitudes)(coefficients)
    made = GridPlane(shape, m, start="sht", latitudes=latitudes).synthesise(modes).permute(0, 3, 1, 2)
    assert (made - expected).abs().max() < TOLERANCE[dtype]


def test_spherical_start_is_the_grid_operator_of_the_core() -> None:
    shape, m = (16, 32), 4
    theta, weights = quadrature("legendre-gauss", shape[0])
    functions = [legendre_functions(k, 2 * m, theta) * weights / (2 * torch.pi) ** 0.5 for k in range(m)]
    core = grid_spherical(torch.stack(functions), shape[1], dtype=torch.complex64)
    field = torch.randn(2, *shape, 1)
    made = harmonics(GridPlane(shape, m, start="sht").analyse(field), shape, m)[:, 0]
    assert torch.allclose(made.mT, core(field[..., 0]), atol=1e-5)


@pytest.mark.parametrize(("latitudes", "exact"), [("legendre-gauss", 2 * 24 - 1), ("equiangular", 23)])
def test_quadrature_is_exact_for_polynomials(latitudes: Latitudes, exact: int) -> None:
    theta, weights = quadrature(latitudes, 24)
    for degree in range(exact + 1):
        integral = float((weights * torch.cos(theta) ** degree).sum())
        assert integral == pytest.approx(0.0 if degree % 2 else 2 / (degree + 1), abs=1e-13), degree


def test_legendre_functions_are_orthonormal() -> None:
    theta, weights = quadrature("legendre-gauss", 40)
    for order in (0, 1, 11):
        P = legendre_functions(order, 24, theta)
        assert torch.allclose((P * weights) @ P.T, torch.eye(24, dtype=torch.float64), atol=1e-12), order


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


def spherical_polynomials(rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """x, y and z on a Legendre-Gauss grid."""
    theta, phi = (
        quadrature("legendre-gauss", rows)[0][:, None],
        2 * torch.pi * torch.arange(columns) / columns,
    )
    x, y = torch.sin(theta) * torch.cos(phi), torch.sin(theta) * torch.sin(phi)
    return x, y, torch.cos(theta).expand(rows, columns)


def test_sfno_weights_belong_to_degrees_so_that_it_commutes_with_rotations() -> None:
    sphere = Sphere((16, 32), 6, "legendre-gauss")
    gains = torch.arange(1.0, 7.0)
    x, y, z = spherical_polynomials(16, 32)
    rotated_by_a_quarter = [(x * x - y * y, x * x - z * z), (x * y, x * z), (x, z)]
    for degree, pair in zip((2, 2, 1), rotated_by_a_quarter, strict=True):
        for polynomial in pair:
            modes = sphere.analyse(polynomial.float()[None, ..., None])
            made = sphere.synthesise(gains[:, None, None] * modes)[0, ..., 0]
            assert torch.allclose(made, gains[degree] * polynomial.float(), atol=1e-5)


def test_sfno_and_the_harmonics_of_the_grid_form_agree() -> None:
    shape, m = (24, 48), 4
    field = torch.randn(1, *shape, 1)
    zonal = Sphere(shape, 2 * m, "legendre-gauss").analyse(field).unflatten(2, (2 * m, 1))
    grid = harmonics(GridPlane(shape, m, start="sht").analyse(field), shape, m)
    for k in range(m):
        same = zonal[k:, 0, k, 0] - grid[0, 0, k, : 2 * m - k]
        assert same.abs().max() < 1e-5, k


def test_way_back_leads_to_another_grid_of_the_sphere() -> None:
    plane = GridPlane((24, 48), 4, start="sht", out=(16, 32))
    fine, coarse = (spherical_polynomials(*shape) for shape in ((24, 48), (16, 32)))
    there, wanted = (x * x - y * z + x for x, y, z in (fine, coarse))
    made = plane.synthesise(plane.analyse(there.float()[None, ..., None]))[0, ..., 0]
    assert torch.allclose(made, wanted.float(), atol=1e-5)


def test_spherical_start_names_the_latitudes_it_needs() -> None:
    with pytest.raises(UserError, match="up to degree 34; 32 latitudes resolve 31"):
        build("mno", 1, (64, 128), form="grid", start="sht", latent=32)
    with pytest.raises(UserError, match="needs the grid form"):
        build("mno", 1, (64, 128), start="sht", twin="fno")


def test_sfno_without_torch_harmonics_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_harmonics", None)
    with pytest.raises(UserError, match="sphere"):
        build("sfno", 1, (64, 128))
