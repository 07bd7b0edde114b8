"""Masks: what was asked for is what comes, always the same, in a bounded number of steps."""

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from data.masks.generate import generate
from data.masks.plane import calibration, inside_corners, radius
from data.masks.poisson import SLACK, poisson, typical_slope, visit
from data.masks.pool import MaskPool, density, draw, pad
from data.masks.spec import KINDS, Kind, MaskSpec
from data.scans.sense import centre
from lab.errors import UserError

GRID = (64, 40)
COUNT = 12
HASHES = {
    "poisson": "589f9dd2c0971115",
    "random": "2d5886944cf0d369",
    "uniform": "47aa7b82d0c3b02b",
    "lines": "705b624b02752312",
}


@pytest.fixture(scope="session")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kind], MaskPool]:
    """A filled pool of each kind, made once."""
    root = tmp_path_factory.mktemp("masks")

    def pool(kind: Kind) -> MaskPool:
        made = MaskPool(MaskSpec(kind, GRID, 4), root)
        made.training(COUNT)
        return made

    return pool


@pytest.mark.parametrize("kind", KINDS)
def test_acceleration_is_within_a_tenth_and_recorded(kind: Kind, pools: Callable[[Kind], MaskPool]) -> None:
    pool = pools(kind)
    actual = [mask.numel() / int(mask.sum()) for mask in pool.training(COUNT)]
    assert all(abs(acceleration - 4) < 0.1 for acceleration in actual)
    assert pool.accelerations(COUNT) == pytest.approx(actual, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_calibration_region_is_sampled_and_masks_differ(
    kind: Kind, pools: Callable[[Kind], MaskPool]
) -> None:
    pool = pools(kind)
    masks = pool.training(COUNT)
    ky, kz = (centre(n, side) for n, side in zip(pool.spec.calibration_region, GRID, strict=True))
    assert masks[:, ky, kz].all()
    distinct = len({mask.numpy().tobytes() for mask in masks})
    assert distinct == COUNT if kind != "uniform" else distinct > 1


@pytest.mark.parametrize("kind", ["poisson", "random"])
def test_corners_are_cropped(kind: Kind, pools: Callable[[Kind], MaskPool]) -> None:
    pool = pools(kind)
    outside = torch.from_numpy(~inside_corners(pool.spec))
    assert outside.float().mean() > 0.1
    assert not pool.training(COUNT)[:, outside].any()


def test_poisson_density_falls_towards_the_edge(pools: Callable[[Kind], MaskPool]) -> None:
    rate = density(pools("poisson").training(COUNT))
    assert rate.min() >= 0
    assert rate.max() <= 1
    inner, outer = rate[centre(40, 64), centre(24, 40)], rate[centre(64, 64), centre(40, 40)]
    ring_inner = (inner.sum() - rate[centre(18, 64), centre(12, 40)].sum()) / (40 * 24 - 18 * 12)
    ring_outer = (outer.sum() - inner.sum()) / (64 * 40 - 40 * 24)
    assert ring_inner > 1.5 * ring_outer


@pytest.mark.parametrize("kind", ["uniform", "lines"])
def test_line_masks_sample_whole_lines(kind: Kind, pools: Callable[[Kind], MaskPool]) -> None:
    masks = pools(kind).training(COUNT)
    assert torch.equal(masks, masks[:, :1].expand_as(masks))


def test_uniform_lines_are_equispaced_outside_the_centre() -> None:
    spec = MaskSpec("uniform", (8, 400), 4)
    lines = generate(spec, seed=3)[0]
    lines[centre(spec.calibration_region[1], 400)] = False
    gaps = np.diff(np.flatnonzero(lines[:180]))
    assert set(gaps) <= {gaps[0] - 1, gaps[0], gaps[0] + 1}


@pytest.mark.parametrize("kind", ["poisson", "random"])
def test_a_mask_depends_on_the_pool_and_its_number_alone(
    kind: Kind, pools: Callable[[Kind], MaskPool], tmp_path: Path
) -> None:
    """A second pool, asked for other numbers first, holds the same masks; growing leaves the first ones alone."""
    second = MaskPool(MaskSpec(kind, GRID, 4), tmp_path)
    beginning = second.training(3)
    assert len(second) == 3
    assert torch.equal(beginning, pools(kind).training(COUNT)[:3])
    assert torch.equal(second.training(COUNT), pools(kind).training(COUNT))
    assert len(second) == COUNT


def test_two_processes_fill_one_pool(tmp_path: Path, root: Path) -> None:
    spec, shared_folder = MaskSpec("random", (64, 40), 3), tmp_path / "shared"
    code = (
        "from data.masks.pool import MaskPool; from data.masks.spec import MaskSpec;"
        f"MaskPool(MaskSpec('random', (64, 40), 3), {str(shared_folder)!r}).training(200)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE) for _ in "ab"
    ]
    assert [process.communicate() and process.returncode for process in processes] == [0, 0]
    filled = MaskPool(spec, shared_folder)
    assert [path.suffix for path in filled.folder.iterdir()] == [".npz"] * 200
    assert torch.equal(filled.training(200), MaskPool(spec, tmp_path / "own").training(200))


def test_every_scan_has_its_own_mask(tmp_path: Path) -> None:
    pool = MaskPool(MaskSpec("random", GRID, 3), tmp_path)
    masks = pool.for_scans([f"MTR_{number:03}" for number in range(33)])
    assert len({mask.numpy().tobytes() for mask in masks.values()}) == 33
    again = MaskPool(pool.spec, tmp_path / "elsewhere").for_scan("MTR_007")
    assert torch.equal(again, masks["MTR_007"])


RINGS = np.arange(0, 1, 0.125)


def ring_means(spec: MaskSpec, image: np.ndarray) -> np.ndarray:
    """The mean of an image over rings of |k| outside the calibration region."""
    k = radius(spec)
    return np.array([image[(k > low) & (k <= low + 0.125)].mean() for low in RINGS])


def nearest_distance(spec: MaskSpec, masks: list[np.ndarray]) -> float:
    """How far the next sample lies, on average over the outer half of k-space, in steps of the longer side."""
    distances = []
    for mask in masks:
        places = np.argwhere(mask & (radius(spec) > 0.5)) / spec.grid * max(spec.grid)
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
        distances.append(np.where(apart == 0, np.inf, apart).min(1).mean())
    return float(np.mean(distances))


@pytest.mark.parametrize(
    ("grid", "acceleration"), [((64, 64), 3), ((104, 40), 4), ((96, 33), 2), ((128, 48), 8)]
)
def test_poisson_masks_have_the_statistics_of_sigpy(grid: tuple[int, int], acceleration: float) -> None:
    """Density by radius; and points lie as far apart, which points of that density drawn at random do not."""
    mri = pytest.importorskip("sigpy.mri")
    spec, seeds = MaskSpec("poisson", grid, acceleration), range(6)
    ours = [poisson(spec, seed) for seed in seeds]
    theirs = [mri.poisson(grid, acceleration, spec.calibration_region, bool, seed=seed) for seed in seeds]
    profile, reference = (ring_means(spec, np.mean(masks, 0)) for masks in (ours, theirs))
    assert np.abs(profile - reference).max() < 0.09
    assert np.sqrt(np.square(profile - reference).mean()) < 0.045
    independent = [np.random.default_rng(seed).random(grid) < np.mean(ours, 0) for seed in seeds]
    distance = nearest_distance(spec, ours)
    assert nearest_distance(spec, theirs) < distance < 1.15 * nearest_distance(spec, theirs)
    assert distance > 1.15 * nearest_distance(spec, independent)


@pytest.mark.parametrize(("grid", "acceleration"), [((48, 40), 5), ((20, 60), 3), ((12, 10), 6)])
def test_no_disc_covers_a_later_point_and_every_other_point_is_covered(
    grid: tuple[int, int], acceleration: float
) -> None:
    """The rule of the module's docstring, word for word, on every pair of points."""
    spec = MaskSpec("poisson", grid, acceleration)
    slope = typical_slope(spec)
    order, uncovered = visit(spec, slope, seed=3)
    rng = np.random.default_rng(3)
    assert np.array_equal(order, rng.permutation(np.flatnonzero(inside_corners(spec) & ~calibration(spec))))
    points = np.stack(np.unravel_index(order, grid))
    centres = points + rng.uniform(-0.5, 0.5, points.shape)
    k = radius(spec)[tuple(points)]
    radii = np.stack([np.maximum((1 + slope * k) * side / max(grid), 1) - SLACK for side in grid])
    covers = (((points[:, None] - centres[:, :, None]) / radii[:, :, None]) ** 2).sum(0) <= 1
    for number in range(len(order)):
        assert uncovered[number] == (not covers[:number, number][uncovered[:number]].any())


@pytest.mark.parametrize(
    ("grid", "acceleration"),
    [((416, 80), 2), ((416, 80), 8), ((416, 80), 1.5), ((12, 10), 6), ((8, 8), 1.5), ((16, 12), 10)],
)
def test_every_seed_gives_a_poisson_mask_with_the_points_asked_for(
    grid: tuple[int, int], acceleration: float
) -> None:
    """Also where `sigpy.mri.poisson` does not return for some seeds: small grids, high accelerations."""
    spec = MaskSpec("poisson", grid, acceleration)
    for seed in range(4 if max(grid) > 100 else 40):
        mask = poisson(spec, seed)
        assert mask.sum() == round(grid[0] * grid[1] / acceleration)
        assert mask[calibration(spec)].all()
        assert not mask[~inside_corners(spec)].any()


def test_poisson_discs_seldom_leave_too_little_room() -> None:
    spec = MaskSpec("poisson", GRID, 4)
    needed = spec.num_samples - calibration(spec).sum()
    room = [visit(spec, typical_slope(spec), seed)[1].sum() for seed in range(40)]
    assert sum(found < needed for found in room) <= 1
    assert np.mean(room) < 1.15 * needed


def test_stored_masks_are_those_of_this_version() -> None:
    """Whoever changes the numbers raises `data.masks.pool.VERSION`: pools and published scores rely on them."""
    hashes = {kind: _hash(generate(MaskSpec(kind, GRID, 4), seed=7)) for kind in KINDS}
    assert hashes == HASHES


def _hash(mask: np.ndarray) -> str:
    return hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("kind", "grid", "acceleration", "calibration", "words"),
    [
        ("poisson", (416, 80), 1.4, None, "at least 1.5"),
        ("poisson", (416, 80), 60, None, "24 x 24 calibration region alone is 1/57.8"),
        ("poisson", (416, 80), 2, (24, 80), "does not fit into a grid of 416 x 80"),
        ("uniform", (64, 40), 9, None, "the nearest is 10.000"),
        ("spiral", (64, 40), 2, None, "poisson, random, uniform, lines"),
        ("poisson", (64, 4), 2, None, "at least 8 points"),
        ("poisson", (64, 40), float("nan"), None, "at least 1.5"),
    ],
)
def test_impossible_requests_are_refused(kind, grid, acceleration, calibration, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match=words):
        MaskSpec(kind, grid, acceleration, calibration)


def test_a_damaged_mask_file_is_named(tmp_path: Path) -> None:
    pool = MaskPool(MaskSpec("random", GRID, 3), tmp_path)
    pool.training(2)
    damaged = pool.folder / "train-00001.npz"
    damaged.write_bytes(damaged.read_bytes()[:50])
    with pytest.raises(UserError, match=r"train-00001.npz cannot be read .*delete it"):
        pool.training(2)


def test_draws_are_a_pure_function_and_cover_the_pool() -> None:
    numbers = draw(seed=5, epoch=2, indices=range(4000), count=100)
    assert torch.equal(numbers[1000:1003], draw(5, 2, torch.tensor([1000, 1001, 1002]), 100))
    counts = torch.bincount(numbers, minlength=100)
    # Uniform draws: chi-squared with 99 degrees of freedom, five standard deviations above its mean.
    assert ((counts - 40.0) ** 2 / 40).sum() < 99 + 5 * 198**0.5
    for other in (draw(6, 2, range(4000), 100), draw(5, 3, range(4000), 100)):
        assert (numbers == other).float().mean() < 0.03


def test_padding_puts_the_calibration_region_around_the_zero_frequency() -> None:
    spec = MaskSpec("random", (416, 80), 8)
    padded = pad(torch.from_numpy(generate(spec, 0)), (512, 160))
    assert padded[256 - 12 : 256 + 12, 80 - 12 : 80 + 12].all()
    assert padded.sum() == round(416 * 80 / 8)
