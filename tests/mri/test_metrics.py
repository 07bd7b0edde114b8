"""pSNR by its formula, SSIM against scikit-image."""

import numpy as np
import pytest
from skimage.metrics import structural_similarity

import mri.ssim
from lab.errors import UserError
from mri.figures import _zoomed
from mri.metrics import psnr, quality
from mri.ssim import ssim


def volumes(shape):
    rng = np.random.default_rng(0)
    target = (rng.random(shape) + 1j * rng.random(shape)).astype(np.complex64)
    noise = 0.1 * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
    return (target + noise).astype(np.complex64), target


def scikit_image(image, target, data_range):
    return structural_similarity(
        image, target, data_range=data_range, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
    )


def test_ssim_of_a_volume_agrees_with_scikit_image():
    image, target = (np.abs(volume) for volume in volumes((21, 24, 20)))
    top = float(target.max())
    assert abs(ssim(image, target, top) - scikit_image(image, target, top)) < 1e-6


def test_ssim_of_few_slices_is_that_of_each_slice():
    image, target = (np.abs(volume) for volume in volumes((3, 24, 20)))
    expected = np.mean([scikit_image(one, other, 1.4) for one, other in zip(image, target, strict=True)])
    assert abs(ssim(image, target, 1.4) - expected) < 1e-6


def test_ssim_does_not_depend_on_the_slabs(monkeypatch):
    image, target = (np.abs(volume) for volume in volumes((19, 16, 14)))
    at_once = ssim(image, target, 1.0)
    monkeypatch.setattr(mri.ssim, "SLAB", 3)
    assert abs(ssim(image, target, 1.0) - at_once) < 1e-12


def test_psnr_is_peak_over_root_mean_square():
    image, target = volumes((4, 12, 13))
    peak = np.abs(target).max()
    errors = {True: np.abs(image) - np.abs(target), False: image - target}
    for magnitude, error in errors.items():
        expected = 20 * np.log10(peak / np.sqrt(np.mean(np.abs(error) ** 2)))
        assert psnr(image, target, float(peak), magnitude) == pytest.approx(expected, abs=1e-4)


def test_an_error_of_phase_alone_is_seen_by_the_complex_psnr_only():
    _, target = volumes((11, 12, 13))
    turned = (target * np.exp(0.3j)).astype(np.complex64)
    found = quality(turned, target)
    assert found["psnr"] > 100
    assert found["psnr_complex"] < 30
    assert found["ssim"] > 0.9999


def test_slices_smaller_than_the_window_are_refused():
    image, target = volumes((2, 20, 10))
    with pytest.raises(UserError, match=r"slices of at least 11 x 11 voxels are needed .*, not 20 x 10"):
        ssim(image, target, 1.0)


@pytest.mark.parametrize("side", range(11, 40))
def test_pictures_have_a_zoomed_region_at_every_size_that_is_scored(side):
    image = np.abs(volumes((1, side, side))[1][0])
    assert min(image[_zoomed(image)].shape) == max(side // 3, 8)
