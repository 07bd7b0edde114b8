"""Shifts of the field of view and turns of the phase."""

import torch

from mri.augment import shifted, turned
from mri.models.sense import Sense


def test_a_shifted_slice_reconstructs_to_the_shifted_image(problem):
    given = problem((12, 10), batch=5)
    plain = Sense((12, 10))(given.full, given.maps, given.mask, given.echo)
    kspace, maps, target = shifted(given.full, given.maps, given.image, 0.5)
    moved = Sense((12, 10))(kspace, maps, given.mask, given.echo)
    assert torch.allclose(moved, target, atol=1e-12)  # unit sum of squares: SENSE of everything is the image
    places = [
        (dy, dz)
        for one, other in zip(moved, plain, strict=True)
        for dy in range(12)
        for dz in range(10)
        if torch.allclose(one, other.roll((dy, dz), (0, 1)), atol=1e-12)
    ]
    assert len(places) == 5
    assert len(set(places)) > 1


def test_shifts_stay_within_the_share_asked_for(problem):
    given = problem((20, 20), batch=200, coils=1)
    marked = torch.zeros_like(given.image)
    marked[:, 10, 10] = 1
    moved = shifted(given.full, given.maps, marked, 0.1)[2].abs().nonzero()[:, 1:] - 10
    assert moved.abs().max() == 2
    assert moved.unique(dim=0).shape[0] == 25


def test_a_turned_slice_reconstructs_to_the_turned_image(problem):
    given = problem((12, 10), batch=3)
    kspace, target = turned(given.full, given.image)
    assert torch.allclose(Sense((12, 10))(kspace, *given.inputs[1:]), target, atol=1e-12)
    ratio = target / given.image
    assert torch.allclose(ratio.abs(), torch.ones_like(ratio.abs()), atol=1e-6)
    assert len(ratio[:, 0, 0].angle().unique()) == 3
