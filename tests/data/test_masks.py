"""Masks: what was asked for is what comes, always the same, and never a hang."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from data.masks.workers import Worker, first_success, poisson_masks, stable_seed

from data.masks.generate import generate, inside_corners, poisson_disc
from data.masks.pool import MaskPool, density, draw, pad
from data.masks.spec import KINDS, Kind, MaskSpec
from data.scans.sense import centre
from lab.errors import UserError

GRID = (64, 40)
COUNT = 12


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
    if kind == "random":  # growing a Poisson pool takes the same path, and seconds
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


def test_poisson_discs_are_those_of_sigpy() -> None:
    """With the slope that `sigpy.mri.poisson` arrives at by bisection, ours is its mask, point by point."""
    mri = pytest.importorskip("sigpy.mri")
    for grid, acceleration, seed in [((64, 40), 4, 1), ((64, 40), 2, 2), ((96, 33), 3, 3)]:
        spec = MaskSpec("poisson", grid, acceleration)
        reference = mri.poisson(grid, acceleration, spec.calibration_region, bool, seed=seed)
        low, high = 0.0, float(max(grid))
        while True:
            mask = poisson_disc(spec, (low + high) / 2, seed)
            excess = spec.actual_acceleration(mask.sum()) - acceleration
            if abs(excess) < 0.1:
                break
            low, high = ((low + high) / 2, high) if excess < 0 else (low, (low + high) / 2)
        assert np.array_equal(mask, reference)


def test_a_seed_without_a_mask_is_replaced() -> None:
    """On this tiny grid no slope gives the acceleration for about a quarter of the seeds; sigpy would not return."""
    spec = MaskSpec("poisson", (12, 10), 6)
    with Worker() as worker:
        made = [first_success(worker, spec, f"train-{number:05}") for number in range(12)]
        assert all(abs(spec.actual_acceleration(one.mask.sum()) - 6) < 0.1 for one in made)
        assert all(one.seed == stable_seed(one.name, one.attempt) for one in made)
        replaced = [one for one in made if one.attempt > 0]
        assert replaced
        assert (
            worker.make(spec, stable_seed(replaced[0].name, 0))
            == "no slope of the density gives the acceleration"
        )
        with pytest.raises(UserError, match=r"no Poisson mask of acceleration 10 .* with 32 seeds"):
            first_success(worker, MaskSpec("poisson", (16, 12), 10), "train-00000")


STUCK = """
import base64, json, sys, time
print("{}", flush=True)
for line in sys.stdin:
    job = json.loads(line)
    if job["seed"] == %d:
        time.sleep(60)
    print(json.dumps({"mask": base64.b64encode(bytes(%d)).decode()}), flush=True)
"""


def test_a_worker_that_is_stuck_is_killed_and_replaced() -> None:
    spec = MaskSpec("poisson", (16, 16), 2)
    command = (sys.executable, "-c", STUCK % (stable_seed("train-00001", 0), 32))
    names = [f"train-{number:05}" for number in range(4)]
    made = poisson_masks(spec, names, num_workers=1, new_worker=lambda: Worker(command, time_limit=1))
    assert {mask.name: mask.attempt for mask in made} == dict.fromkeys(names, 0) | {"train-00001": 1}


def test_a_worker_that_cannot_start_is_reported() -> None:
    command = (sys.executable, "-c", "raise SystemExit('no sigpy here')")
    with pytest.raises(UserError, match=r"did not start \(no sigpy here\)"):
        list(poisson_masks(MaskSpec("poisson", (16, 16), 2), ["a"], new_worker=lambda: Worker(command)))


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
    with pytest.raises(UserError, match=r"train-00001.npz is not a mask .*delete it"):
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
