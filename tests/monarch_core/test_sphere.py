"""Spherical harmonics against quadrature of polynomials and torch-harmonics."""

import numpy as np
import pytest
import torch

import monarch_core as mc
from monarch_core import PlaneTransform, SphereTransform
from monarch_core.transforms.sphere import legendre_functions, quadrature

GRIDS = ["legendre-gauss", "equiangular"]


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def harmonics_plane(shape, m, **options):
    return PlaneTransform(shape, m, start="sht", dtype=torch.float64, **options)


def as_harmonics(modes, shape, m):
    """Modes (mode, channel, batch, 2) as complex numbers (batch, channel, k, degree - k) in the units of others.

    Orthonormal in the mean over the grid there, in the integral over the sphere here.
    """
    scale = (4 * torch.pi / (shape[0] * shape[1])) ** 0.5
    return torch.view_as_complex(modes).unflatten(0, (m, 2 * m)).permute(3, 2, 0, 1) * scale


def polynomials(rows, columns):
    """x, y and z on a Legendre-Gauss grid."""
    theta = quadrature("legendre-gauss", rows)[0][:, None]
    phi = 2 * torch.pi * torch.arange(columns, dtype=torch.float64) / columns
    return (
        torch.sin(theta) * torch.cos(phi),
        torch.sin(theta) * torch.sin(phi),
        torch.cos(theta).expand(rows, columns),
    )


@pytest.mark.parametrize(("latitudes", "exact"), [("legendre-gauss", 2 * 24 - 1), ("equiangular", 23)])
def test_quadrature_is_exact_for_polynomials(latitudes, exact):
    theta, weights = quadrature(latitudes, 24)
    for degree in range(exact + 1):
        integral = float((weights * torch.cos(theta) ** degree).sum())
        assert integral == pytest.approx(0.0 if degree % 2 else 2 / (degree + 1), abs=1e-13), degree


@pytest.mark.parametrize("n", [2, 7, 64, 256])
def test_gauss_grid_is_that_of_numpy(n, assert_close):
    x, weights = np.polynomial.legendre.leggauss(n)
    theta, made = quadrature("legendre-gauss", n)
    assert_close(torch.cos(theta), torch.from_numpy(x[::-1].copy()), tolerance=1e-14)
    assert_close(made, torch.from_numpy(weights[::-1].copy()), tolerance=1e-13)


def test_legendre_functions_are_orthonormal(assert_close):
    theta, weights = quadrature("legendre-gauss", 40)
    for order in (0, 1, 11):
        P = legendre_functions(order, 24, theta)
        assert_close((P * weights) @ P.T, torch.eye(24, dtype=torch.float64))


@pytest.mark.parametrize("learn", ["fixed", ("per-frequency", "fixed"), ("per-frequency", "per-point")])
@pytest.mark.parametrize("latitudes", GRIDS)
def test_analysis_is_that_of_torch_harmonics(latitudes, learn, assert_close):
    torch_harmonics = pytest.importorskip("torch_harmonics")
    shape, m = (16, 32), 4
    field = draw(2, *shape, 3)
    expected = torch_harmonics.RealSHT(*shape, lmax=3 * m - 1, mmax=m, grid=latitudes).double()(
        field.permute(0, 3, 1, 2)
    )
    made = as_harmonics(harmonics_plane(shape, m, latitudes=latitudes, learn=learn).analyse(field), shape, m)
    for k in range(m):
        assert_close(
            made[:, :, k], expected[..., k : k + 2 * m, k], tolerance=1e-7
        )  # its tables are in float32


@pytest.mark.parametrize("latitudes", GRIDS)
def test_synthesis_is_that_of_torch_harmonics(latitudes, assert_close):
    torch_harmonics = pytest.importorskip("torch_harmonics")
    shape, m = (16, 32), 4
    modes = draw(2 * m * m, 3, 2, 2)
    coefficients = torch.zeros(2, 3, 3 * m - 1, m, dtype=torch.complex128)
    for k in range(m):
        coefficients[..., k : k + 2 * m, k] = as_harmonics(modes, shape, m)[:, :, k]
    expected = torch_harmonics.InverseRealSHT(*shape, lmax=3 * m - 1, mmax=m, grid=latitudes).double()(
        coefficients
    )
    made = harmonics_plane(shape, m, latitudes=latitudes).synthesise(modes)
    assert_close(made.permute(0, 3, 1, 2), expected, tolerance=1e-7)


def test_start_is_the_spherical_grid_operator(assert_close):
    shape, m = (16, 32), 4
    theta, weights = quadrature("legendre-gauss", shape[0])
    functions = [legendre_functions(k, 2 * m, theta) * weights / (2 * torch.pi) ** 0.5 for k in range(m)]
    grid = mc.grid_spherical(torch.stack(functions), shape[1], dtype=torch.complex128)
    field = draw(2, *shape, 1)
    made = as_harmonics(harmonics_plane(shape, m).analyse(field), shape, m)[:, 0]
    assert_close(made.mT, grid(field[..., 0]))


def test_way_back_leads_to_another_grid_of_the_sphere(assert_close):
    plane = harmonics_plane((24, 48), 4, out=(16, 32))
    fine, coarse = (x * x - y * z + x for x, y, z in (polynomials(24, 48), polynomials(16, 32)))
    assert_close(plane.synthesise(plane.analyse(fine[None, ..., None]))[0, ..., 0], coarse)


def test_start_names_the_latitudes_it_needs():
    with pytest.raises(ValueError, match="up to degree 34; 32 latitudes resolve 31"):
        harmonics_plane((32, 64), 12)
    with pytest.raises(ValueError, match="learn it per frequency"):
        harmonics_plane((64, 128), 12, learn="matrix")
    with pytest.raises(ValueError, match="learn it per frequency"):
        harmonics_plane((64, 128), 12, learn="monarch")


def test_degrees_alone_weighted_commute_with_rotations(assert_close):
    sphere = SphereTransform((16, 32), 6, dtype=torch.float64)
    gains = torch.arange(1.0, 7.0, dtype=torch.float64)
    x, y, z = polynomials(16, 32)
    rotated_by_a_quarter = [(x * x - y * y, x * x - z * z), (x * y, x * z), (x, z)]
    for degree, pair in zip((2, 2, 1), rotated_by_a_quarter, strict=True):
        for polynomial in pair:
            modes = sphere.analyse(polynomial[None, ..., None])
            made = sphere.synthesise(gains[:, None, None, None] * modes)[0, ..., 0]
            assert_close(made, gains[degree] * polynomial)


def test_both_transforms_of_the_sphere_have_the_same_harmonics(assert_close):
    shape, m = (24, 48), 4
    field = draw(1, *shape, 1)
    by_degree = SphereTransform(shape, 2 * m, dtype=torch.float64).analyse(field)  # (degree, 1, order, 2)
    by_order = harmonics_plane(shape, m).analyse(field).view(m, 2 * m, 2)
    for k in range(m):
        assert_close(by_degree[k:, 0, k], by_order[k, : 2 * m - k])
        assert not by_degree[:k, 0, k].any()


def test_sphere_refuses_degrees_that_the_grid_does_not_resolve():
    with pytest.raises(ValueError, match="as many latitudes and twice as many longitudes"):
        SphereTransform((16, 24), 16)
