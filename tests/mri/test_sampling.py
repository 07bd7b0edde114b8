"""Masks."""

import torch

from data.masks.pool import MaskPool, pad
from data.scans.reader import load_scans
from mri.sampling import evaluation_masks, mask_spec, measured, training_masks


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
    masks = training_masks(scans, [2.0], "random", 5)
    ky, kz = scans[0].acquired_grid
    assert masks.shape == (5, 32, 24)
    assert abs(ky * kz / masks.sum((1, 2)).float() - 2.0).max() < 0.1
    assert len(masks.flatten(1).unique(dim=0)) == 5


def test_pools_of_several_accelerations_count_alike(knees):
    scans = load_scans(knees, "train").scans
    mixed = training_masks(scans, [2.0, 4.0], "random", 3)
    apart = [training_masks(scans, [acceleration], "random", 3) for acceleration in (2.0, 4.0)]
    assert torch.equal(mixed, torch.cat(apart))


def test_what_was_measured_is_what_is_not_zero(problem):
    given = problem((12, 10))
    assert torch.equal(measured(given.kspace), given.mask)
