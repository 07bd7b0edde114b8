"""Shifts and flips of the field of view, turns of the phase, noise."""

import torch

from mri.augment import flipped, noisier, shifted, turned
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


def test_echoes_of_a_slice_move_alike(problem):
    given = problem((16, 12), batch=6)
    places = torch.arange(16 * 12).view(1, 16, 12).expand(6, -1, -1).to(torch.complex128)
    _, _, moved = shifted(given.full, given.maps, places, 0.4, alike=2)
    assert torch.equal(moved[0::2], moved[1::2])
    assert not torch.equal(moved[0], moved[2])


def test_a_turned_slice_reconstructs_to_the_turned_image(problem):
    given = problem((12, 10), batch=3)
    kspace, target = turned(given.full, given.image)
    assert torch.allclose(Sense((12, 10))(kspace, *given.inputs[1:]), target, atol=1e-12)
    ratio = target / given.image
    assert torch.allclose(ratio.abs(), torch.ones_like(ratio.abs()), atol=1e-6)
    assert len(ratio[:, 0, 0].angle().unique()) == 3


def test_a_flipped_slice_reconstructs_to_the_flipped_image(problem):
    seen = set()
    for plane in ((12, 10), (11, 9)):
        given = problem(plane, batch=1)
        for seed in range(8):
            torch.manual_seed(seed)
            kspace, maps, target, mask = flipped(given.full, given.maps, given.image, given.mask)
            moved = Sense(plane)(kspace * mask[:, None], maps, mask, given.echo)
            expected = Sense(plane)(given.kspace, given.maps, given.mask, given.echo)
            torch.manual_seed(seed)
            assert torch.allclose(moved, flipped(expected)[0], atol=1e-12)
            assert torch.allclose(Sense(plane)(kspace, maps, mask, given.echo), target, atol=1e-12)
            seen.add((plane, tuple(mask.flatten().tolist())))
    assert len(seen) == 8


def test_noise_is_added_to_half_of_the_slices_and_not_above_the_level_asked_for(problem):
    given = problem((16, 12), batch=400, coils=1, dtype=torch.complex64)
    added = noisier(given.full, given.mask, 0.5) - given.full
    rms = added.abs().square().mean((1, 2, 3)).sqrt()
    level = torch.stack([one[one != 0].abs().median() for one in given.kspace])
    assert 0.4 < (rms > 0).float().mean() < 0.6
    assert (rms / level).max() < 0.6
    assert (rms / level).max() > 0.4


def test_an_empty_slice_stays_empty_under_noise(problem):
    given = problem((16, 12), batch=8, dtype=torch.complex64)
    given.full[::2] = 0
    noisy = noisier(given.full, given.mask, 1.0)
    assert not noisy[::2].any()
    assert noisy.isfinite().all()
