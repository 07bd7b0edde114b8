"""Geometries: what they imply, against definitions of their own."""

import json

import pytest
import torch

from data.fields.geometry import Box, Geometry, Sphere, from_dict
from data.fields.layout import Grid
from lab.errors import UserError
from monarch_core.transforms.sphere import quadrature

TORUS, CHANNEL, WALLS = Box(), Box("periodic", "walls"), Box("walls", "walls")
ALL: list[Geometry] = [TORUS, CHANNEL, Box("walls", "periodic"), WALLS, Sphere(), Sphere("equiangular")]


@pytest.mark.parametrize("geometry", ALL, ids=str)
def test_a_geometry_survives_json(geometry: Geometry) -> None:
    assert from_dict(json.loads(json.dumps(geometry.to_dict()))) == geometry


def test_an_unknown_geometry_is_one_sentence() -> None:
    with pytest.raises(UserError, match="known are box, line, sphere"):
        from_dict({"kind": "torus"})


@pytest.mark.parametrize("geometry", ALL, ids=str)
def test_every_region_and_only_one_has_each_point(geometry: Geometry) -> None:
    if not geometry.places:
        assert geometry == TORUS
        return
    position = Grid.of(geometry, 24, 48).positions.abs()
    assert position.shape == (24, 48)
    counts = sum(((position >= low) & (position < high)).int() for low, high in geometry.places.values())
    assert torch.equal(counts, torch.ones_like(counts))


def test_the_nearest_wall_is_that_of_the_walled_axis() -> None:
    grid = Grid.of(CHANNEL, 4, 8)
    expected = [abs(y - round(y)) for y in ((j + 0.5) / 8 for j in range(8))]
    assert grid.positions.tolist() == [pytest.approx(expected)] * 4


@pytest.mark.parametrize("geometry", [Sphere(), Sphere("equiangular")], ids=str)
def test_weights_integrate_polynomials_over_the_sphere(geometry: Sphere) -> None:
    grid = Grid.of(geometry, 13, 4)
    weights = grid.geometry.weights(grid.rows)
    assert weights is not None
    for degree, mean in ((0, 1.0), (1, 0.0), (2, 1 / 3), (4, 1 / 5), (8, 1 / 9)):
        assert float((weights * grid.rows.cos() ** degree).mean()) == pytest.approx(mean, abs=1e-12)
    assert Sphere.of(grid.rows) == geometry


def test_other_latitudes_are_refused() -> None:
    with pytest.raises(UserError, match="neither Gauss's nor equiangular"):
        Sphere.of(torch.linspace(0.1, 3.0, 9))


@pytest.mark.parametrize(("geometry", "stride"), [(TORUS, 4), (TORUS, 3), (WALLS, 3), (CHANNEL, 3)], ids=str)
def test_every_kth_point_is_the_grid_of_fewer_points(geometry: Geometry, stride: int) -> None:
    coarse, expected = Grid.of(geometry, 12, 24).every(stride), Grid.of(geometry, 12 // stride, 24 // stride)
    assert torch.allclose(coarse.rows, expected.rows)
    assert torch.allclose(coarse.columns, expected.columns)


@pytest.mark.parametrize("geometry", [WALLS, CHANNEL, Sphere()], ids=str)
def test_points_that_are_no_such_grid_are_refused(geometry: Geometry) -> None:
    with pytest.raises(UserError, match="every 2-th of 12 x 24 points"):
        Grid.of(geometry, 12, 24).every(2)


def test_walls_that_are_among_the_points_stay_there() -> None:
    """The public Darcy file: 421 points from wall to wall, of which everybody takes 85."""
    points = torch.linspace(0, 1, 421, dtype=torch.float64)
    grid = Grid(WALLS, points, points)
    assert grid.coarser[85] == 5
    coarse = grid.every(5)
    assert coarse.resolution == (85, 85)
    assert torch.allclose(coarse.rows, torch.linspace(0, 1, 85, dtype=torch.float64))
    assert grid.every(2).every(5).rows.tolist() == grid.every(10).rows.tolist()
    with pytest.raises(UserError, match="every 8-th of 421 x 421 points"):
        grid.every(8)


def test_points_that_are_neither_on_walls_nor_in_the_middles_of_cells_are_not_thinned() -> None:
    points = torch.arange(1, 16, dtype=torch.float64) / 16
    assert Grid(WALLS, points, points).coarser == {15: 1}
    assert Grid(CHANNEL, *CHANNEL.coordinates(15, 15)).coarser == {15: 1, 5: 3, 3: 5, 1: 15}


def test_coarser_grids_are_all_those_of_the_kind() -> None:
    assert Grid.of(TORUS, 12, 24).coarser == {12: 1, 6: 2, 4: 3, 3: 4, 2: 6, 1: 12}
    assert Grid.of(WALLS, 12, 24).coarser == {12: 1, 4: 3}
    assert Grid.of(Sphere(), 12, 24).coarser == {12: 1}


def test_pictures_have_y_upwards_or_the_north_above() -> None:
    field = torch.arange(6.0).reshape(2, 3)  # rows x, columns y
    assert WALLS.picture(field).tolist() == [[2, 5], [1, 4], [0, 3]]
    assert Sphere().picture(field).tolist() == field.tolist()


def test_colatitudes_go_from_north_to_south() -> None:
    for kind in ("legendre-gauss", "equiangular"):
        theta, weights = quadrature(kind, 9)
        assert (theta.diff() > 0).all()
        assert float(weights.sum()) == pytest.approx(2.0)
