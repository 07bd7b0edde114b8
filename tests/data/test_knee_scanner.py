"""Coils, maps from the calibration region, noise and target of the simulated scanner."""

import numpy as np
import pytest
import torch

from data.knee.anatomy import render
from data.knee.coils import SEGMENTS, WIRE_MM, CoilArray, loop_field
from data.knee.config import (
    FULL_SHAPE,
    LAPTOP_SHAPE,
    acquired_grid,
    calibration_region,
    default_noise,
    field_of_view,
)
from data.knee.scanner import MAP_BITS, Measured, Protocol, Scanner, round_mantissa
from data.knee.subject import Subject
from data.masks.generate import poisson
from data.masks.spec import MaskSpec
from data.scans.espirit import MapEstimator
from data.scans.sense import centre, combine, ifft2c, sample


def laptop_protocol(coils: int = 8, noise: float | None = None) -> Protocol:
    grid = acquired_grid(LAPTOP_SHAPE)
    strength = default_noise(LAPTOP_SHAPE) if noise is None else noise
    return Protocol(
        LAPTOP_SHAPE, field_of_view(LAPTOP_SHAPE), grid, calibration_region(grid), coils, strength
    )


def measure(scanner: Scanner, seed: int, rows: slice) -> Measured:
    return scanner.measure(rows, render(Subject(seed), scanner.protocol.axes(rows)).echoes)


@pytest.fixture(scope="module")
def scan() -> tuple[Scanner, Measured]:
    scanner = Scanner(laptop_protocol(), seed=4)
    return scanner, measure(scanner, 4, slice(0, 32))


def map_error(scanner: Scanner, maps: torch.Tensor, seed: int, rows: slice) -> float:
    """RMS over the anatomy of the difference from the true maps, both with unit sum of squares, phase aligned."""
    axes = scanner.protocol.axes(rows)
    true = torch.from_numpy(scanner.coil_array.on(axes)).transpose(0, 1)
    true = true / true.abs().square().sum(1, keepdim=True).sqrt()
    overlap = (maps.conj() * true).sum(1, keepdim=True)
    difference = (maps * overlap / overlap.abs() - true).abs().square().sum(1)
    body = torch.from_numpy(render(Subject(seed), axes).labels > 0)
    return float(difference[body].mean().sqrt())


def test_field_on_the_axis_of_a_loop_is_the_textbook_one() -> None:
    distances = np.array([0.0, 30.0, 80.0])
    points = np.stack([0 * distances, distances, 0 * distances], axis=-1)
    field = loop_field(points, np.zeros(3), np.array([0.0, 1.0, 0.0]), 50.0)
    want = SEGMENTS * 50.0**2 / (50.0**2 + WIRE_MM**2 + distances**2) ** 1.5
    np.testing.assert_allclose(np.abs(field), want, rtol=1e-12)


@pytest.mark.parametrize("coils", [8, 16])
def test_each_coil_sees_another_part_of_the_leg(coils: int) -> None:
    values = CoilArray(np.random.default_rng(0), coils).on(laptop_protocol().axes())
    assert values.shape == (coils, *LAPTOP_SHAPE)
    brightest = {np.unravel_index(np.abs(v).argmax(), v.shape) for v in values}
    assert len(brightest) == coils


@pytest.mark.parametrize("coils", [8, 16])
def test_estimated_maps_are_within_five_per_cent_of_the_true_ones(coils: int) -> None:
    scanner, rows = Scanner(laptop_protocol(coils), seed=3), slice(12, 18)
    maps = measure(scanner, 3, rows).maps
    assert map_error(scanner, maps, 3, rows) < 0.05


def test_full_size_maps_are_within_five_per_cent_of_the_true_ones() -> None:
    protocol = Protocol(
        FULL_SHAPE, field_of_view(FULL_SHAPE), (416, 80), (24, 24), 8, default_noise(FULL_SHAPE)
    )
    scanner, rows = Scanner(protocol, seed=3), slice(250, 251)
    assert map_error(scanner, measure(scanner, 3, rows).maps, 3, rows) < 0.05


def test_maps_agree_with_sigpys_espirit(scan: tuple[Scanner, Measured]) -> None:
    mri = pytest.importorskip("sigpy.mri")
    scanner, measured = scan
    kspace = measured.kspace[16, 0]
    theirs = torch.from_numpy(
        mri.app.EspiritCalib(
            kspace.numpy(), calib_width=12, kernel_width=5, thresh=0.03, crop=0, show_pbar=False
        ).run()
    )
    square = kspace[:, 42:54, 14:26]
    ours = MapEstimator((96, 40))(square[None])[0]
    body = torch.from_numpy(render(Subject(4), scanner.protocol.axes(slice(16, 17))).labels[0] > 0)
    overlap = (ours.conj() * theirs).sum(0).abs()
    assert float(overlap[body].quantile(0.02)) > 0.99


def test_maps_have_unit_sum_of_squares_and_smooth_phase_between_slices(
    scan: tuple[Scanner, Measured],
) -> None:
    maps = scan[1].maps
    np.testing.assert_allclose(maps.abs().square().sum(1), 1.0, atol=0.01)
    middle = maps[:, :, 48, 20]
    step = (middle[1:].conj() * middle[:-1]).sum(1)
    assert float(step.angle().abs().max()) < 0.5


def test_target_is_sense_of_everything_acquired_with_the_stored_maps(scan: tuple[Scanner, Measured]) -> None:
    measured = scan[1]
    want = combine(ifft2c(measured.kspace), measured.maps.unsqueeze(1))
    torch.testing.assert_close(measured.target, want)


def test_nothing_is_acquired_outside_the_ellipse(scan: tuple[Scanner, Measured]) -> None:
    scanner, measured = scan
    support = torch.from_numpy(scanner.protocol.support())
    assert (measured.kspace[..., ~support] == 0).all()
    assert (measured.kspace[..., support] != 0).all()
    assert int(support.sum()) < 78 * 20


def test_noise_has_the_strength_asked_for_and_differs_between_coils_and_slices() -> None:
    quiet, loud = (Scanner(laptop_protocol(noise=noise), seed=5) for noise in (0.0, 0.01))
    rows = slice(3, 5)
    support = torch.from_numpy(quiet.protocol.support())
    noise = (measure(loud, 5, rows).kspace - measure(quiet, 5, rows).kspace)[..., support]
    assert float(noise.abs().square().mean().sqrt()) == pytest.approx(0.01, rel=0.02)
    flat = noise.flatten(0, 2)
    correlation = (flat @ flat.mH).abs() / flat.abs().square().sum(1).mean()
    assert float((correlation - torch.eye(len(flat))).max()) < 0.2


def test_slabs_do_not_change_the_scan(scan: tuple[Scanner, Measured]) -> None:
    whole = scan[1]
    scanner = Scanner(laptop_protocol(), seed=4)
    for rows in (slice(0, 3), slice(3, 4)):
        part = measure(scanner, 4, rows)
        torch.testing.assert_close(part.kspace, whole.kspace[rows], atol=1e-6, rtol=0)
        # A map that lies between two of the rounded values may go either way: one step of its last bit.
        torch.testing.assert_close(part.target.abs(), whole.target[rows].abs(), atol=5e-5, rtol=2**-MAP_BITS)


def test_zero_filled_sense_at_acceleration_2_lies_where_the_paper_has_it(
    scan: tuple[Scanner, Measured],
) -> None:
    scanner, measured = scan
    grid = scanner.protocol.grid
    mask = torch.zeros(LAPTOP_SHAPE[1:])
    mask[centre(grid[0], 96), centre(grid[1], 40)] = torch.from_numpy(
        poisson(MaskSpec("poisson", grid, 2.0), seed=7)
    ).float()
    zero_filled = combine(ifft2c(sample(measured.kspace, mask)), measured.maps.unsqueeze(1)).abs()
    target = measured.target.abs()
    error = (zero_filled - target).square().mean(dim=(0, 2, 3)).sqrt()
    psnr = 20 * torch.log10(target.amax(dim=(0, 2, 3)) / error)
    assert float(psnr[0]) == pytest.approx(33.0, abs=2.5)
    assert float(psnr[1]) == pytest.approx(35.0, abs=2.5)


def test_rounding_keeps_the_bits_asked_for() -> None:
    values = torch.randn(1000, dtype=torch.complex64)
    rounded = torch.view_as_real(round_mantissa(values, 7))
    relative = (rounded - torch.view_as_real(values)).abs() / torch.view_as_real(values).abs()
    assert 2**-9 < float(relative.max()) <= 2**-8
