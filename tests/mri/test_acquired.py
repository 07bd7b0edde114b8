"""Reconstruction on the acquired grid."""

import torch

from data.masks.pool import pad
from data.scans.sense import Sense, centre
from mri.models.mcs import MonarchCS
from mri.models.parts.acquired import acquired_plane, on_acquired_grid, resampled


def smooth_maps(plane: tuple[int, int], coils: int = 4) -> torch.Tensor:
    """Maps with unit sum of squares that vary slowly over the field of view, the same whatever the grid."""
    y, z = ((torch.arange(n, dtype=torch.float64) - n // 2) / n for n in plane)
    number = torch.arange(coils)[:, None, None] + 1.0
    phase = torch.exp(1j * (number * y[:, None] - z * number**0.5))
    maps = (1 + 0.3 * number * torch.cos(y[:, None] * number + z)) * phase
    return maps / maps.abs().square().sum(0).sqrt()


def test_everything_acquired_gives_what_full_sampling_gives():
    stored, acquired = (48, 40), (36, 20)
    maps = smooth_maps(stored)[None]
    inside = ..., centre(36, 48), centre(20, 40)
    kspace = torch.zeros_like(maps)
    kspace[inside] = Sense(smooth_maps(acquired))(torch.randn(acquired, dtype=torch.complex128))
    mask = pad(torch.ones(1, *acquired, dtype=torch.bool), stored)
    seen = []

    def zero_filled(kspace, maps, mask):
        seen.append(mask.shape[-2:])
        return Sense(maps, mask).adjoint(kspace)

    found = on_acquired_grid(zero_filled, kspace, maps, mask)
    expected = Sense(maps).adjoint(kspace)
    assert seen == [acquired]
    assert (found - expected).norm() < 0.01 * expected.norm()  # as good as the maps can be interpolated
    assert resampled(maps, acquired).abs().square().sum(1).sub(1).abs().max() < 1e-12


def test_maps_are_interpolated_to_where_the_coarse_points_are():
    coarse = resampled(smooth_maps((48, 40)), (36, 20))
    assert (coarse - smooth_maps((36, 20))).abs().max() < 2e-3


def test_the_acquired_grid_holds_every_sample_and_odd_sizes_keep_theirs():
    for plane in ((31, 17), (32, 18)):
        for place in ((0, 0), (plane[0] - 1, plane[1] - 1), (plane[0] // 2, 3)):
            mask = torch.zeros(2, *plane, dtype=torch.bool)
            mask[1][place] = True
            box = acquired_plane(mask)
            kept = mask[..., centre(box[0], plane[0]), centre(box[1], plane[1])]
            assert kept.sum() == 1


def test_without_padding_both_grids_are_one(problem):
    given = problem((16, 12), dtype=torch.complex64)
    given.mask[:, [0, -1]] = given.mask[:, :, [0, -1]] = True
    one, other = (MonarchCS((16, 12), grid=grid) for grid in ("acquired", "stored"))
    assert torch.equal(one(*given.inputs), other(*given.inputs))


def test_weights_do_not_see_how_far_kspace_was_padded():
    method = MonarchCS((36, 20), iterations=3, dtype=torch.float64)
    image = torch.randn(36, 20, dtype=torch.complex128)
    kspace = Sense(smooth_maps((36, 20)))(image)[None]
    mask = torch.rand(1, 36, 20) < 0.6
    mask[:, [0, -1]] = mask[:, :, [0, -1]] = True
    plain = method(kspace * mask[:, None], smooth_maps((36, 20))[None], mask, torch.zeros(1))
    for stored in ((48, 40), (45, 32)):
        inside = ..., centre(36, stored[0]), centre(20, stored[1])
        maps = smooth_maps(stored)[None]
        padded = torch.zeros_like(maps)
        padded[inside] = kspace * mask[:, None]
        found = method(padded, maps, pad(mask, stored), torch.zeros(1))
        expected = torch.zeros_like(padded)
        expected[inside] = Sense(smooth_maps((36, 20)))(plain)
        expected = Sense(maps).adjoint(expected)
        assert (found - expected).norm() < 0.02 * expected.norm()
