"""Coordinate channels: no seam where a domain is periodic, and the same values at the same places of any grid."""

import pytest
import torch

from data.fields.geometry import Box, Geometry, Sphere
from data.fields.layout import Grid
from pde.models.parts.coordinates import Coordinates

BOXES = [Box(), Box("walls", "walls"), Box("walls", "periodic"), Box("periodic", "walls")]


@pytest.mark.parametrize("geometry", [*BOXES, Sphere(), Sphere("equiangular")])
def test_features_have_no_seam_along_periodic_axes(geometry: Geometry) -> None:
    features = geometry.features(16, 24)
    for axis, bounded in enumerate(geometry.bounded):
        if not bounded:
            series = torch.fft.rfft(features, dim=axis, norm="forward")
            assert (
                series.narrow(axis, 2, 6).abs().max() < 1e-12
            )  # one period of a sine; a seam has all frequencies


@pytest.mark.parametrize("geometry", [*BOXES, Sphere(), Sphere("equiangular")])
def test_features_tell_points_apart(geometry: Geometry) -> None:
    """Wherever they are not the same point, as all longitudes of a pole are."""
    inner = geometry.features(10, 12)[1:-1].flatten(0, 1)
    nearest = torch.cdist(inner, inner).fill_diagonal_(1).min()
    assert nearest > 0.05


@pytest.mark.parametrize("geometry", BOXES)
def test_features_are_equal_at_the_points_that_two_grids_share(geometry: Box) -> None:
    fine, coarse = geometry.features(36, 24), geometry.features(12, 8)
    assert torch.allclose(fine[Grid.of(geometry, 36, 24).kept(3)], coarse, rtol=0, atol=1e-14)


def test_features_of_a_sphere_are_equal_on_common_longitudes() -> None:
    fine, coarse = Sphere().features(8, 32), Sphere().features(8, 16)
    assert torch.allclose(fine[:, ::2], coarse, rtol=0, atol=1e-14)
    assert torch.allclose(fine.norm(dim=-1), torch.ones(8, 32, dtype=torch.float64), rtol=0, atol=1e-14)


def test_diagonal_coordinates_do_not_change_along_the_antidiagonal() -> None:
    where = Coordinates("diagonal").on(16, 16)
    for steps in (1, 5):
        assert torch.allclose(where.roll((steps, -steps), (0, 1)), where, rtol=0, atol=1e-13)
    assert not torch.allclose(where.roll((1, 1), (0, 1)), where, atol=1e-2)
    assert torch.allclose(Coordinates("diagonal").on(32, 32)[::2, ::2], where, rtol=0, atol=1e-13)


def test_plain_coordinates_are_those_published_for_fno() -> None:
    where = Coordinates("plain").on(3, 5)
    assert where[:, 0, 0].tolist() == [0.0, 0.5, 1.0]
    assert where[0, :, 1].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("kind", "geometry", "channels"),
    [
        ("plain", Box(), 2),
        ("geometry", Box(), 4),
        ("geometry", Box("walls", "periodic"), 3),
        ("geometry", Box("walls", "walls"), 2),
        ("geometry", Sphere(), 3),
        ("diagonal", Box(), 2),
    ],
)
def test_channels_come_behind_those_of_the_field(kind, geometry, channels) -> None:
    coordinates = Coordinates(kind, geometry)
    field = torch.randn(2, 6, 8, 5)
    both = coordinates.beside(field)
    assert coordinates.channels == channels
    assert torch.equal(both[..., :5], field)
    assert torch.equal(both[1, ..., 5:], coordinates.on(6, 8).float())


def test_coordinates_met_first_in_inference_serve_training_too() -> None:
    coordinates, weight = Coordinates("geometry"), torch.randn(4, dtype=torch.float64, requires_grad=True)
    with torch.inference_mode():
        coordinates.on(4, 4)
    (coordinates.on(4, 4) * weight).sum().backward()
    assert weight.grad is not None
