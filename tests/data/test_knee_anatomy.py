"""The knee's shapes: partial volumes, parts in their places, and independence of matrix, slab and subject count."""

import numpy as np
import pytest

from data.knee.anatomy import LABELS, Slab, render
from data.knee.lattice import Axes, Axis, Lattice, spline_weights
from data.knee.scanner import Protocol
from data.knee.shapes import Field, band, blend, coverage, ellipsoid, tube
from data.knee.subject import Subject

SHAPE = (56, 64, 48)


def axes_of(shape: tuple[int, int, int], rows: slice = slice(None)) -> Axes:
    return Protocol(shape, (160.0, 160.0, 128.0), (8, 8), (8, 8), 8, 0.0).axes(rows)


def render_rows(seed: int, rows: slice = slice(None), shape: tuple[int, int, int] = SHAPE) -> Slab:
    return render(Subject(seed), axes_of(shape, rows))


@pytest.fixture(scope="module")
def knee() -> Slab:
    return render_rows(1)


def grid(half: float, points: int) -> list[Field]:
    line = (np.arange(points) + 0.5) / points * 2 * half - half
    return list(np.meshgrid(line, line, line, indexing="ij"))


def test_coverage_sums_to_the_volume_of_a_ball() -> None:
    x, y, z = grid(10.0, 42)
    share = coverage(ellipsoid(x, y, z, (0.0, 0.0, 0.0), (6.0, 6.0, 6.0)))
    assert share.sum() * (20 / 42) ** 3 == pytest.approx(4 / 3 * np.pi * 6**3, rel=5e-3)


def test_coverage_of_a_plane_is_its_exact_share_of_the_voxel() -> None:
    x = np.broadcast_to(np.arange(5.0)[:, None, None], (5, 4, 4))
    np.testing.assert_allclose(coverage(x - 2.25)[:, 0, 0], [1.0, 0.75, 0.0])


@pytest.mark.parametrize("semi_axes", [(6.0, 6.0, 6.0), (5.0, 7.0, 6.0)])
def test_ellipsoid_distance_has_unit_slope_at_its_surface(semi_axes: tuple[float, float, float]) -> None:
    x, y, z = grid(9.0, 60)
    level = ellipsoid(x, y, z, (0.5, -0.3, 0.2), semi_axes)
    slope = np.sqrt(sum(g**2 for g in np.gradient(level, 18 / 60)))
    np.testing.assert_allclose(slope[np.abs(level) < 0.2], 1.0, atol=0.06)


def test_capsule_and_tube_distances_are_exact_for_circles() -> None:
    x, y, z = grid(9.0, 20)
    radius = np.sqrt(y**2 + z**2)
    np.testing.assert_allclose(band(x, y, z, (-20, 0, 0), (20, 0, 0), radius=3.0), radius - 3, atol=1e-12)
    circle = tube(y, z, (0.0 * y, 0.0 * y), (3 + 0.0 * y, 3 + 0.0 * y))
    np.testing.assert_allclose(circle, radius - 3, atol=1e-9)


def test_blend_is_the_union_away_from_the_seam_and_larger_on_it() -> None:
    first, second = np.array([-2.0, 0.0, 5.0]), np.array([5.0, 0.0, -2.0])
    np.testing.assert_allclose(blend(first, second, 2.0), [-2.0, -0.5, -2.0])


def test_spline_weights_reproduce_lines() -> None:
    points = np.linspace(-5.0, 5.0, 11)
    weights = spline_weights(Axis(points, 1.0), -6.0, 2.0, 10)
    nodes = -6.0 + 2.0 * (np.arange(10) - 1.5)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(weights @ nodes, points, atol=1e-5)


def test_lattice_has_unit_variance_whatever_its_spacing() -> None:
    field = Lattice.draw(np.random.default_rng(0), (3.0, 4.0, 5.0)).on(axes_of((160, 160, 128)))
    assert field.std() == pytest.approx(1.0, rel=0.15)


def test_every_tissue_is_there_in_a_plausible_amount(knee: Slab) -> None:
    body = (knee.labels > 0).sum()
    share = {name: (knee.labels == i).sum() / body for i, name in enumerate(LABELS)}
    limits = {
        "muscle": (0.12, 0.60),
        "fat": (0.10, 0.55),
        "marrow": (0.08, 0.35),
        "cartilage": (0.005, 0.05),
        "meniscus": (0.0005, 0.02),
        "fluid": (0.0003, 0.03),
        "skin": (0.005, 0.15),
    }
    for name, (low, high) in limits.items():
        assert low < share[name] < high, name


def test_parts_lie_where_they_do_in_a_knee(knee: Slab) -> None:
    x, y, _ = (axis.points for axis in axes_of(SHAPE))

    def middle(name: str, rows: slice = slice(None)) -> tuple[float, float]:
        where = np.nonzero(knee.labels[rows] == LABELS.index(name))
        return float(x[rows][where[0]].mean()), float(y[where[1]].mean())

    height, _ = middle("cartilage")
    assert -35 < height < 20
    assert abs(middle("meniscus")[0] - height) < 25
    assert middle("blood")[1] > middle("marrow")[1] > middle("tendon")[1]
    assert (knee.labels[:, 0] == 0).all(), "air in front of the knee"
    assert (knee.labels == LABELS.index("marrow"))[[0, -1]].any(axis=(1, 2)).all(), "a shaft above and below"


def test_cartilage_lies_between_the_bones(knee: Slab) -> None:
    """Along x through a condyle: marrow, then cartilage, then marrow."""
    found = 0
    for column in knee.labels.reshape(SHAPE[0], -1).T:
        names = [LABELS[i] for i in column]
        if "cartilage" in names and names.count("marrow") > 12:
            at = names.index("cartilage")
            found += "marrow" in names[:at] and "marrow" in names[at:]
    assert found > 50


def test_signals_are_finite_and_never_negative(knee: Slab) -> None:
    assert np.isfinite(knee.echoes).all()
    assert knee.echoes.min() >= 0
    assert knee.echoes[:, knee.labels == 0].max() < 0.06


@pytest.mark.parametrize("rows", [slice(0, 1), slice(17, 24), slice(55, 56)])
def test_a_slab_on_its_own_equals_its_part_of_the_whole(knee: Slab, rows: slice) -> None:
    part = render_rows(1, rows)
    np.testing.assert_allclose(part.echoes, knee.echoes[:, rows], atol=5e-5)
    assert (part.labels != knee.labels[rows]).mean() < 1e-4


def test_the_same_seed_gives_the_same_knee_and_another_seed_another(knee: Slab) -> None:
    rows = slice(24, 32)
    np.testing.assert_array_equal(render_rows(1, rows).echoes, render_rows(1, rows).echoes)
    other = render_rows(2, rows).echoes
    assert np.abs(other - knee.echoes[:, rows]).mean() > 0.1 * knee.echoes.mean()


def test_a_finer_matrix_shows_the_same_knee(knee: Slab) -> None:
    fine = render_rows(1, slice(48, 64), (112, 128, 96)).echoes
    coarse = fine.reshape(2, 8, 2, 64, 2, 48, 2).mean(axis=(2, 4, 6))
    want = knee.echoes[:, 24:32]
    # Voxel n // 2 is the origin on either grid, so the coarse average is off by a quarter of a voxel.
    assert np.corrcoef(coarse.ravel(), want.ravel())[0, 1] > 0.95
