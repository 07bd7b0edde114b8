"""Darcy flow: the solver against analytic solutions, a direct solver and real data; the medium."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import spsolve

from data.darcy.medium import gaussian_field, permeability
from data.darcy.solver import apply, face_permeabilities, poisson, solve
from data.fields.geometry import Box

Array = npt.NDArray[np.float64]


def mesh(n: int) -> tuple[Array, Array]:
    middles = (points.numpy() for points in Box("walls", "walls").coordinates(n, n))
    x, y = np.meshgrid(*middles, indexing="ij")
    return x, y


def constant_coefficient(n: int) -> tuple[Array, Array, Array]:
    """a = 2 and p = sin(pi x) sin(2 pi y)."""
    x, y = mesh(n)
    p = np.sin(np.pi * x) * np.sin(2 * np.pi * y)
    return 2 * np.ones_like(x), p, 2 * 5 * np.pi**2 * p


def variable_coefficient(n: int) -> tuple[Array, Array, Array]:
    """a = exp(x + y²) and p = x (1 - x) sin(pi y): -div(a grad p) = -a (p_x + 2 y p_y + laplacian p)."""
    x, y = mesh(n)
    a = np.exp(x + y**2)
    p, p_x, p_y = (
        x * (1 - x) * np.sin(np.pi * y),
        (1 - 2 * x) * np.sin(np.pi * y),
        np.pi * x * (1 - x) * np.cos(np.pi * y),
    )
    laplacian = -2 * np.sin(np.pi * y) - np.pi**2 * p
    return a, p, -a * (p_x + 2 * y * p_y + laplacian)


@pytest.mark.parametrize("problem", [constant_coefficient, variable_coefficient])
def test_the_error_falls_with_the_square_of_the_cell(problem: object) -> None:
    errors = []
    for n in (16, 32, 64, 128):
        a, p, f = problem(n)  # type: ignore[operator]
        errors.append(np.abs(solve(a, f) - p).max() / np.abs(p).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 2) < 0.1), orders
    assert errors[-1] < 3e-4


def test_half_cells_conduct_in_series() -> None:
    """Across a face two half cells conduct in series."""
    n = 8
    a = np.repeat(np.array([1.0, 40.0, 3.0, 12.0, 12.0, 0.5, 7.0, 3.0])[:, None], n, axis=1)
    across_x, _ = face_permeabilities(a)
    resistance = 0.5 / a[:-1] + 0.5 / a[1:]
    np.testing.assert_allclose(across_x[1:-1], 1 / resistance)
    np.testing.assert_allclose(across_x[0], 2 * a[0])


def test_conjugate_gradients_agree_with_a_direct_solver() -> None:
    n = 24
    a = permeability(n, 0, 0)
    faces = face_permeabilities(a)
    columns = [apply(faces, column.reshape(n, n)).ravel() for column in np.eye(n * n)]
    matrix = csr_array(np.stack(columns, axis=1))
    assert abs(matrix - matrix.T).max() < 1e-9
    direct = spsolve(matrix, np.ones(n * n)).reshape(n, n)
    np.testing.assert_allclose(solve(a, np.ones((n, n))), direct, rtol=1e-8)


def test_the_sine_transform_inverts_the_operator_of_one() -> None:
    f = np.random.default_rng(0).standard_normal((12, 12))
    np.testing.assert_allclose(apply(face_permeabilities(np.ones((12, 12))), poisson(f)), f, atol=1e-10)


def test_the_medium_has_the_covariance_of_its_formula() -> None:
    n, count = 16, 3000
    x, y = mesh(n)
    point, other = (4, 9), (7, 10)
    values = np.array([[g[point], g[other]] for g in (gaussian_field(n, 1, i) for i in range(count))])
    k = np.arange(n)
    eigenvalues = (np.pi**2 * (k[:, None] ** 2 + k[None, :] ** 2) + 9.0) ** -2
    eigenvalues[0, 0] = 0.0
    norm = np.where(k == 0, 1.0, 2.0)

    def cosines(i: tuple[int, int]) -> Array:
        return np.outer(np.cos(np.pi * k * x[i]), np.cos(np.pi * k * y[i]))

    def covariance(i: tuple[int, int], j: tuple[int, int]) -> float:
        return float((eigenvalues * np.outer(norm, norm) * cosines(i) * cosines(j)).sum())

    expected = np.array(
        [
            [covariance(point, point), covariance(point, other)],
            [covariance(other, point), covariance(other, other)],
        ]
    )
    np.testing.assert_allclose(values.T @ values / count, expected, rtol=0.1)


def test_the_medium_has_two_permeabilities_in_equal_shares() -> None:
    media = np.array([permeability(32, 0, i) for i in range(50)])
    assert set(np.unique(media)) == {3.0, 12.0}
    assert abs((media == 12.0).mean() - 0.5) < 0.03


# The real pairs, as their values tell: every 16th cell of a 512 x 512 grid, from the first; source over permeability
# is 50 where the permeability is low and 25 / 9 where it is high.
FINE, LOW, HIGH = 512, 1 / 50, 9 / 25


@pytest.fixture(scope="module")
def real(shared: Path) -> tuple[npt.NDArray[np.bool_], Array]:
    file = shared / "pde" / "darcy.npz"
    if not file.is_file():
        pytest.skip("the real Darcy pairs (shared/pde/darcy.npz) are absent")
    with np.load(file) as pairs:
        return pairs["darcy_test_32_x"], pairs["darcy_test_32_y"].astype(float)


def test_real_pressures_obey_the_equation_where_the_medium_is_uniform(
    real: tuple[npt.NDArray[np.bool_], Array],
) -> None:
    high, p = real
    sides = p[:, 2:, 1:-1] + p[:, :-2, 1:-1] + p[:, 1:-1, 2:] + p[:, 1:-1, :-2]
    corners = p[:, 2:, 2:] + p[:, :-2, :-2] + p[:, 2:, :-2] + p[:, :-2, 2:]
    laplacian = (20 * p[:, 1:-1, 1:-1] - 4 * sides - corners) / 6 * 32**2
    windows = np.lib.stride_tricks.sliding_window_view(high, (7, 7), axis=(1, 2))
    inner = laplacian[:, 2:-2, 2:-2]
    np.testing.assert_allclose(np.median(inner[windows.all((-1, -2))]), 1 / HIGH, rtol=1e-4)
    np.testing.assert_allclose(np.median(inner[~windows.any((-1, -2))]), 1 / LOW, rtol=1e-4)


def resolved(high: npt.NDArray[np.bool_]) -> Array:
    """The pressure for a permeability that is known at every 16th point: each fine cell takes the nearest."""
    nearest = np.clip(np.round(np.arange(FINE) / 16), 0, 31).astype(int)
    a = np.where(high[np.ix_(nearest, nearest)], HIGH, LOW)
    return solve(a, np.ones_like(a), tolerance=1e-4)[::16, ::16]


def test_real_pressures_are_reproduced_as_well_as_their_own_subsampling_permits(
    real: tuple[npt.NDArray[np.bool_], Array],
) -> None:
    """Boundaries of the medium are known to half a coarse cell only; own media, treated alike, set the measure."""
    errors, permitted = [], []
    for i in range(2):
        high, p = real[0][i], real[1][i]
        errors.append(np.linalg.norm(resolved(high) - p) / np.linalg.norm(p))
        own = gaussian_field(FINE, 0, i) > 0
        exact = solve(np.where(own, HIGH, LOW), np.ones((FINE, FINE)), tolerance=1e-4)[::16, ::16]
        permitted.append(np.linalg.norm(resolved(own[::16, ::16]) - exact) / np.linalg.norm(exact))
    assert np.mean(errors) < 0.04
    assert np.mean(errors) < 1.5 * np.mean(permitted), (errors, permitted)
