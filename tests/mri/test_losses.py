"""What training minimises, against formulas and against the scores of the tables."""

import numpy as np
import pytest
import torch

from mri.losses import penalty, slice_ssim
from mri.metrics import psnr
from mri.ssim import ssim


def images(slices: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(slices, 20, 17, dtype=torch.complex128, generator=generator)
    target *= torch.arange(1, slices + 1)[:, None, None]
    noise = torch.randn(slices, 20, 17, dtype=torch.complex128, generator=generator)
    return target + 0.3 * noise, target


@pytest.mark.parametrize(
    ("loss", "expected"), [("l1", 5.0), ("squared", 25.0), ("mixed", 30.0), ("magnitude", 9.0)]
)
def test_losses_by_their_formulas(loss, expected):
    image, target = torch.full((2, 3, 4), 5 + 0j), torch.full((2, 3, 4), 2 - 4j)
    if loss == "magnitude":
        target = torch.full((2, 3, 4), 2j)
    assert float(penalty(loss, image, target)) == pytest.approx(expected)


def test_similarity_of_slices_is_the_one_of_the_tables():
    image, target = images()
    expected = [
        ssim(np.abs(x.numpy())[None], np.abs(t.numpy())[None], float(t.abs().max()))
        for x, t in zip(image, target, strict=True)
    ]
    assert slice_ssim(image, target).numpy() == pytest.approx(expected, rel=1e-10)
    assert torch.allclose(slice_ssim(target, target), torch.ones(3).double())


def test_similarity_trains_after_a_validation():
    image, target = images(1)
    with torch.inference_mode():
        slice_ssim(image[:, :13, :14], target[:, :13, :14])  # sizes that no other test has
    x = image[:, :13, :14].clone().requires_grad_()
    slice_ssim(x, target[:, :13, :14]).sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("similarity", [0.0, 10.0])
def test_quality_is_minus_the_scores_of_the_tables(similarity):
    image, target = images()
    pairs = [(x.numpy()[None], t.numpy()[None]) for x, t in zip(image, target, strict=True)]
    decibels = np.mean([psnr(x, t, np.abs(t).max()) for x, t in pairs])
    ranges = target.abs().amax((-2, -1)).square().log().mean()
    unlike = 1 - float(slice_ssim(image, target).mean())
    expected = float(ranges) - decibels * np.log(10) / 10 + similarity * unlike
    assert float(penalty("quality", image, target, similarity)) == pytest.approx(expected, abs=1e-4)


def test_quality_does_not_depend_on_how_bright_a_slice_is():
    image, target = images()
    bright = penalty("quality", 100 * image, 100 * target) - 2 * np.log(100)
    assert float(bright) == pytest.approx(float(penalty("quality", image, target)), abs=1e-4)


def test_gradients_of_quality_are_exact_and_finite_on_an_empty_slice():
    image, target = images(1)
    image = image[:, :12, :12].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: penalty("quality", x, target[:, :12, :12]), image, atol=1e-6)
    empty = torch.zeros(1, 12, 12, dtype=torch.complex64, requires_grad=True)
    penalty("quality", empty, torch.zeros_like(empty)).backward()
    assert torch.isfinite(empty.grad.abs()).all()
