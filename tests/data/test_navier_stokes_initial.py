"""The initial field: its law, and that a sample is its own."""

import math

import numpy as np
import pytest

from data.navier_stokes.initial import ALPHA, SIGMA, TAU, amplitude, initial_field


@pytest.mark.parametrize("std", [0.262, 0.185, 0.043])
def test_the_public_amplitudes_have_the_spread_they_are_named_for(std: float) -> None:
    k = np.arange(-127, 128)
    decay = (4 * math.pi**2 * (k[:, None] ** 2 + k[None, :] ** 2) + TAU**2) ** (-ALPHA / 2)
    decay[127, 127] = 0.0
    expected = amplitude(std) * math.sqrt((decay**2).sum())
    assert round(expected, 3) == std
    spread = np.sqrt(np.mean([initial_field(32, 1, i, std) ** 2 for i in range(200)]))
    assert spread == pytest.approx(expected, rel=0.05)


def test_amplitudes_are_those_of_the_public_codes() -> None:
    assert amplitude(0.262) / amplitude(0.185) == pytest.approx(math.sqrt(2))
    assert amplitude(0.185) == pytest.approx(7**1.5)
    assert amplitude(0.043) ** 2 == pytest.approx(SIGMA)
    assert amplitude(0.524) == pytest.approx(2 * amplitude(0.262))


def test_spectrum_falls_with_the_given_power() -> None:
    power = np.mean(
        [abs(np.fft.fft2(initial_field(32, 2, i), norm="forward")) ** 2 for i in range(400)], axis=0
    )
    for kx, ky in ((1, 0), (3, 2), (0, 7)):
        # The real part keeps half of the power of a complex coefficient of variance 2.
        law = amplitude(0.262) ** 2 * (4 * math.pi**2 * (kx**2 + ky**2) + TAU**2) ** -ALPHA
        assert power[kx, ky] == pytest.approx(law, rel=0.25)
    assert power[0, 0] == pytest.approx(0.0, abs=1e-30)


def test_samples_and_seeds_differ_and_repeat() -> None:
    assert np.array_equal(initial_field(16, 3, 4), initial_field(16, 3, 4))
    assert not np.allclose(initial_field(16, 3, 4), initial_field(16, 3, 5))
    assert not np.allclose(initial_field(16, 3, 4), initial_field(16, 4, 4))


def test_a_finer_grid_adds_modes_to_the_same_field() -> None:
    coarse, fine = (np.fft.fft2(initial_field(n, 0, 0), norm="forward") for n in (32, 64))
    low = np.r_[0:16, -15:0]
    np.testing.assert_allclose(coarse[np.ix_(low, low)], fine[np.ix_(low, low)], atol=1e-15)
    assert np.abs(fine[16:49]).max() > 1e-6
