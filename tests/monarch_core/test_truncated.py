"""Truncated transforms and where they start, against torch.fft, scipy and torch-harmonics, in both precisions."""

import pytest
import scipy.fft
import torch
from torch import Tensor
from torch_harmonics import InverseRealSHT, RealSHT

from monarch_core import AxisTransform, PlaneTransform, SphereTransform, grid_dft, grid_spherical
from monarch_core.pairs import product
from monarch_core.transforms.sphere import legendre_functions, quadrature

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
SHAPE, MODES = (16, 24), 5
FORMS = {
    "fixed": "fixed",
    "separable": "matrix",
    "monarch": "monarch",
    "grid": ("per-frequency", "per-point"),
    "one axis": ("per-frequency", "fixed"),
}
LATITUDES = ["legendre-gauss", "equiangular"]


@pytest.fixture(params=list(TOLERANCE), ids=str)
def dtype(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


def analysed(plane: PlaneTransform, field: Tensor) -> Tensor:
    return torch.view_as_complex(plane.analyse(field))


def modes_by_scipy(field: Tensor, start: str, m: int) -> Tensor:
    """The lowest 2m x 2m cosines or sines, two neighbours along y packed into a complex number: (mode, 1, batch)."""
    transform = {"dct": scipy.fft.dctn, "dst": scipy.fft.dstn}[start]
    waves = torch.from_numpy(transform(field[..., 0].numpy(), axes=(1, 2), norm="ortho"))
    waves = waves[:, : 2 * m, : 2 * m]
    pairs = torch.complex(waves[..., 0::2], waves[..., 1::2])
    return pairs.permute(2, 1, 0).reshape(-1, 1, len(field))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", ["dct", "dst"])
def test_analysis_is_the_cosine_or_sine_transform_of_scipy(start, form, dtype):
    field = torch.randn(3, *SHAPE, 1)
    made = analysed(PlaneTransform(SHAPE, MODES, start=start, learn=FORMS[form]), field)
    assert (made - modes_by_scipy(field, start, MODES)).abs().max() < TOLERANCE[dtype]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", ["dct", "dst"])
def test_synthesis_is_the_inverse_transform_of_scipy(start, form, dtype):
    inverse = {"dct": scipy.fft.idctn, "dst": scipy.fft.idstn}[start]
    waves = torch.zeros(2, *SHAPE)
    waves[:, : 2 * MODES, : 2 * MODES] = torch.randn(2, 2 * MODES, 2 * MODES)
    field = torch.from_numpy(inverse(waves.numpy(), axes=(1, 2), norm="ortho"))[..., None]
    plane = PlaneTransform(SHAPE, MODES, start=start, learn=FORMS[form])
    assert (plane.synthesise(plane.analyse(field)) - field).abs().max() < TOLERANCE[dtype]


@pytest.mark.parametrize("form", FORMS)
def test_analysis_is_the_truncated_fft(form, dtype):
    field = torch.randn(3, *SHAPE, 2)
    spectrum = torch.fft.rfft2(field, dim=(1, 2), norm="ortho")
    kept = torch.cat((spectrum[:, :MODES, :MODES], spectrum[:, -MODES:, :MODES]), dim=1)
    made = analysed(PlaneTransform(SHAPE, MODES, learn=FORMS[form]), field)
    assert (made - kept.permute(2, 1, 3, 0).flatten(0, 1)).abs().max() < TOLERANCE[dtype]


@pytest.mark.parametrize("form", FORMS)
def test_synthesis_undoes_analysis_of_what_is_kept(form):
    plane = PlaneTransform((32, 32), 5, learn=FORMS[form])
    t = torch.arange(32) * 2 * torch.pi / 32
    waves = [torch.cos(3 * t[:, None] - 2 * t), torch.sin(-4 * t[:, None] + 4 * t), torch.ones(32, 32)]
    field = torch.stack(waves)[..., None]
    assert torch.allclose(plane.synthesise(plane.analyse(field)), field, atol=1e-5)


def test_plane_is_the_grid_monarch_operator():
    field = torch.randn(2, 16, 16, 1)
    keep = ([*range(4), *range(-4, 0)], range(4))
    core = grid_dft((16, 16), norm="ortho", keep=keep)(field[..., 0])
    made = analysed(PlaneTransform((16, 16), 4), field)
    assert torch.allclose(made, core.permute(2, 1, 0).reshape(-1, 1, 2), atol=1e-5)


def harmonics(made: Tensor, shape: tuple[int, int], m: int) -> Tensor:
    """Modes (mode, channel, batch) of the spherical start as (batch, channel, k, degree - k), in the units of others.

    Orthonormal in the mean over the grid there, in the integral over the sphere here.
    """
    rows, columns = shape
    scale = (4 * torch.pi / (rows * columns)) ** 0.5
    return made.unflatten(0, (m, 2 * m)).permute(3, 2, 0, 1) * scale


@pytest.mark.parametrize("latitudes", LATITUDES)
def test_spherical_start_is_the_transform_of_torch_harmonics(latitudes, dtype):
    shape, m = (16, 32), 4
    field = torch.randn(2, *shape, 3)
    plane = PlaneTransform(shape, m, start="sht", latitudes=latitudes)
    expected = RealSHT(*shape, lmax=3 * m - 1, mmax=m, grid=latitudes)(field.permute(0, 3, 1, 2))
    made = harmonics(analysed(plane, field), shape, m)
    for k in range(m):
        wanted = expected[..., k : k + 2 * m, k]
        assert (made[:, :, k] - wanted).abs().max() < TOLERANCE[dtype], k


@pytest.mark.parametrize("latitudes", LATITUDES)
def test_spherical_synthesis_is_that_of_torch_harmonics(latitudes, dtype):
    shape, m = (16, 32), 4
    modes = torch.randn(2 * m * m, 3, 2, dtype=dtype.to_complex())
    coefficients = torch.zeros(2, 3, 3 * m - 1, m, dtype=modes.dtype)
    for k in range(m):
        coefficients[..., k : k + 2 * m, k] = harmonics(modes, shape, m)[:, :, k]
    expected = InverseRealSHT(*shape, lmax=3 * m - 1, mmax=m, grid=latitudes)(coefficients)
    plane = PlaneTransform(shape, m, start="sht", latitudes=latitudes)
    made = plane.synthesise(torch.view_as_real(modes)).permute(0, 3, 1, 2)
    assert (made - expected).abs().max() < TOLERANCE[dtype]


def test_spherical_start_is_the_grid_operator():
    shape, m = (16, 32), 4
    theta, weights = quadrature("legendre-gauss", shape[0])
    functions = [legendre_functions(k, 2 * m, theta) * weights / (2 * torch.pi) ** 0.5 for k in range(m)]
    core = grid_spherical(torch.stack(functions), shape[1], dtype=torch.complex64)
    field = torch.randn(2, *shape, 1)
    made = harmonics(analysed(PlaneTransform(shape, m, start="sht"), field), shape, m)[:, 0]
    assert torch.allclose(made.mT, core(field[..., 0]), atol=1e-5)


@pytest.mark.parametrize(("latitudes", "exact"), [("legendre-gauss", 2 * 24 - 1), ("equiangular", 23)])
def test_quadrature_is_exact_for_polynomials(latitudes, exact):
    theta, weights = quadrature(latitudes, 24)
    for degree in range(exact + 1):
        integral = float((weights * torch.cos(theta) ** degree).sum())
        assert integral == pytest.approx(0.0 if degree % 2 else 2 / (degree + 1), abs=1e-13), degree


def test_legendre_functions_are_orthonormal():
    theta, weights = quadrature("legendre-gauss", 40)
    for order in (0, 1, 11):
        P = legendre_functions(order, 24, theta)
        assert torch.allclose((P * weights) @ P.T, torch.eye(24, dtype=torch.float64), atol=1e-12), order


def spherical_polynomials(rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """x, y and z on a Legendre-Gauss grid."""
    theta = quadrature("legendre-gauss", rows)[0][:, None]
    phi = 2 * torch.pi * torch.arange(columns) / columns
    x, y = torch.sin(theta) * torch.cos(phi), torch.sin(theta) * torch.sin(phi)
    return x, y, torch.cos(theta).expand(rows, columns)


def test_a_factor_per_degree_commutes_with_rotations():
    sphere = SphereTransform((16, 32), 6)
    gains = torch.arange(1.0, 7.0)
    x, y, z = spherical_polynomials(16, 32)
    rotated_by_a_quarter = [(x * x - y * y, x * x - z * z), (x * y, x * z), (x, z)]
    for degree, pair in zip((2, 2, 1), rotated_by_a_quarter, strict=True):
        for polynomial in pair:
            modes = sphere.analyse(polynomial.float()[None, ..., None])
            made = sphere.synthesise(gains[:, None, None, None] * modes)[0, ..., 0]
            assert torch.allclose(made, gains[degree] * polynomial.float(), atol=1e-5)


def test_degrees_below_a_limit_and_the_spherical_start_agree():
    shape, m = (24, 48), 4
    field = torch.randn(1, *shape, 1)
    by_degree = analysed(SphereTransform(shape, 2 * m), field)[:, 0]  # (degree, order)
    by_order = analysed(PlaneTransform(shape, m, start="sht"), field).unflatten(0, (m, 2 * m))[..., 0, 0]
    for k in range(m):
        assert (by_degree[k:, k] - by_order[k, : 2 * m - k]).abs().max() < 1e-5, k


def test_way_back_leads_to_another_grid_of_the_sphere():
    plane = PlaneTransform((24, 48), 4, start="sht", out=(16, 32))
    fine, coarse = (spherical_polynomials(*shape) for shape in ((24, 48), (16, 32)))
    there, wanted = (x * x - y * z + x for x, y, z in (fine, coarse))
    made = plane.synthesise(plane.analyse(there.float()[None, ..., None]))[0, ..., 0]
    assert torch.allclose(made, wanted.float(), atol=1e-5)


def test_groups_of_channels_use_their_own_transforms():
    plane = PlaneTransform((16, 16), 3, learn="matrix", groups=2)
    field = torch.randn(1, 16, 16, 4)
    before = plane.analyse(field)
    with torch.no_grad():
        for change in plane.analysis.parameters():
            change[1] += 1.0
    after = plane.analyse(field)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2:], after[:, 2:])


@pytest.mark.parametrize("points", [48, 64])
def test_resampled_transform_sees_the_same_modes(points):
    axis = AxisTransform(32, 4, learn="matrix")
    with torch.no_grad():  # a deviation that is smooth along the axis, as a trained one is
        smooth = torch.cos(2 * torch.pi * 3 * torch.arange(32) / 32)
        for change in axis.analysis.parameters():
            change += 0.05 * smooth[:, None, None] * torch.randn(4, 2)
    finer = axis.resampled(points)

    def modes(axis: AxisTransform, n: int) -> Tensor:
        t = torch.arange(n) / n
        field = torch.sin(2 * torch.pi * 2 * t) + 0.5 * torch.cos(2 * torch.pi * 3 * t)
        return field @ axis.analysis.matrix()[0] * n**-0.5

    assert torch.allclose(modes(axis, 32), modes(finer, points), atol=1e-5)


@pytest.mark.parametrize("start", ["dft", "dct", "dst"])
@pytest.mark.parametrize("learn", ["fixed", "matrix", "monarch"])
@pytest.mark.parametrize(("n", "out"), [(32, 16), (16, 24)])
def test_rectangular_axis_resamples_what_its_frequencies_hold(learn, start, n, out):
    held = {
        "dft": lambda t: 0.3 + torch.cos(2 * torch.pi * t) + torch.sin(6 * torch.pi * t),
        "dct": lambda t: 0.3 + torch.cos(torch.pi * t) + torch.cos(5 * torch.pi * t),
        "dst": lambda t: torch.sin(torch.pi * t) + torch.sin(5 * torch.pi * t),
    }[start]

    def points(count: int) -> Tensor:
        # Cosines and sines belong to points in the middle of cells, and Fourier series to points at their beginning.
        return (torch.arange(count) + (0.0 if start == "dft" else 0.5)) / count

    axis = AxisTransform(n, 4, start=start, learn=learn, out=out)
    assert torch.allclose(axis.synthesis(axis.analysis(held(points(n)))), held(points(out)), atol=1e-5)


def test_product_in_pairs_has_the_right_derivatives():
    A = torch.randn(2, 3, 4, 2, dtype=torch.float64, requires_grad=True)
    B = torch.randn(2, 4, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(product, (A, B))
