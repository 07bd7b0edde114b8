"""Masks."""

import torch

from data.masks.pool import MaskPool, pad
from data.masks.spec import MaskSpec
from data.scans.reader import load_scans
from mri.sampling import evaluation_masks, measured, training_masks


def test_evaluation_uses_the_mask_in_the_file_and_otherwise_the_scans_own(knees):
    scans = load_scans(knees, "test").scans
    stored = evaluation_masks(scans, 2.0, "poisson")
    plane = scans[0].matrix_shape[1:]
    for scan in scans:
        assert torch.equal(stored[scan.scan_id], pad(scan.mask(2.0), plane))
    other = evaluation_masks(scans, 2.5, "random")
    pool = MaskPool(MaskSpec("random", scans[0].acquired_grid, 2.5))
    assert torch.equal(other[scans[0].scan_id], pad(pool.for_scan(scans[0].scan_id), plane))
    assert not torch.equal(*(other[scan.scan_id] for scan in scans[:2]))


def test_training_masks_lie_within_the_acquired_grid_and_differ(knees):
    scans = load_scans(knees, "train").scans
    found = training_masks(scans, [2.0], "random", 5)
    assert list(found) == [scan.scan_id for scan in scans]
    masks = found[scans[0].scan_id]
    assert all(each is masks for each in found.values())
    ky, kz = scans[0].acquired_grid
    assert masks.shape == (5, 32, 24)
    assert abs(ky * kz / masks.sum((1, 2)).float() - 2.0).max() < 0.1
    assert len(masks.flatten(1).unique(dim=0)) == 5


def test_pools_of_several_accelerations_count_alike(knees):
    scans = load_scans(knees, "train").scans
    mixed = training_masks(scans, [2.0, 4.0], "random", 3)
    apart = [training_masks(scans, [acceleration], "random", 3) for acceleration in (2.0, 4.0)]
    for scan in scans:
        assert torch.equal(mixed[scan.scan_id], torch.cat([each[scan.scan_id] for each in apart]))


def test_scans_of_two_sizes_have_masks_of_their_own(mixed_knees):
    scans = load_scans(mixed_knees, "train").scans
    training, own = training_masks(scans, [2.0], "random", 5), evaluation_masks(scans, 2.0, "random")
    assert {scan.matrix_shape[1:] for scan in scans} == {(32, 24), (36, 28)}
    for scan in scans:
        masks = training[scan.scan_id]
        assert masks.shape[1:] == own[scan.scan_id].shape == scan.matrix_shape[1:]
        acquired = pad(torch.ones(scan.acquired_grid, dtype=torch.bool), scan.matrix_shape[1:])
        assert not masks[:, ~acquired].any()
        assert abs(acquired.sum() / masks.sum((1, 2)) - 2.0).max() < 0.1


def test_what_was_measured_is_what_is_not_zero(problem):
    given = problem((12, 10))
    assert torch.equal(measured(given.kspace), given.mask)
