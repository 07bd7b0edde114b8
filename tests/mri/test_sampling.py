"""Masks and shifts."""

import torch

from data.masks.pool import MaskPool, pad
from data.scans.reader import load_scans
from mri.models.sense import Sense
from mri.sampling import evaluation_masks, mask_spec, measured, random_shift, random_turn, training_masks


def test_a_shifted_slice_reconstructs_to_the_shifted_image(problem):
    given = problem((12, 10), batch=5)
    plain = Sense((12, 10))(given.full, given.maps, given.mask, given.echo)
    kspace, maps, target = random_shift(given.full, given.maps, given.image, 0.5)
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
    moved = random_shift(given.full, given.maps, marked, 0.1)[2].abs().nonzero()[:, 1:] - 10
    assert moved.abs().max() == 2
    assert moved.unique(dim=0).shape[0] == 25


def test_a_turned_slice_reconstructs_to_the_turned_image(problem):
    given = problem((12, 10), batch=3)
    kspace, target = random_turn(given.full, given.image)
    assert torch.allclose(Sense((12, 10))(kspace, *given.inputs[1:]), target, atol=1e-12)
    ratio = target / given.image
    assert torch.allclose(ratio.abs(), torch.ones_like(ratio.abs()), atol=1e-6)
    assert len(ratio[:, 0, 0].angle().unique()) == 3


def test_evaluation_uses_the_mask_in_the_file_and_otherwise_the_scans_own(knees):
    scans = load_scans(knees, "test").scans
    stored = evaluation_masks(scans, 2.0, "poisson")
    plane = scans[0].matrix_shape[1:]
    for scan in scans:
        assert torch.equal(stored[scan.scan_id], pad(scan.mask(2.0), plane))
    other = evaluation_masks(scans, 2.5, "random")
    pool = MaskPool(mask_spec(scans, 2.5, "random"))
    assert torch.equal(other[scans[0].scan_id], pad(pool.for_scan(scans[0].scan_id), plane))
    assert not torch.equal(*(other[scan.scan_id] for scan in scans[:2]))


def test_training_masks_lie_within_the_acquired_grid_and_differ(knees):
    scans = load_scans(knees, "train").scans
    masks = training_masks(scans, 2.0, "random", 5)
    ky, kz = scans[0].acquired_grid
    assert masks.shape == (5, 32, 24)
    assert abs(ky * kz / masks.sum((1, 2)).float() - 2.0).max() < 0.1
    assert len(masks.flatten(1).unique(dim=0)) == 5


def test_what_was_measured_is_what_is_not_zero(problem):
    given = problem((12, 10))
    assert torch.equal(measured(given.kspace), given.mask)
