"""Options of the three commands, and the rules that follow from a matrix size."""

from dataclasses import dataclass
from math import log, prod
from pathlib import Path
from typing import Final, Literal

from lab.checks import at_least
from lab.errors import UserError

Shape = tuple[int, int, int]

FULL_SHAPE: Final[Shape] = (512, 512, 160)
LAPTOP_SHAPE: Final[Shape] = (32, 96, 40)
FIELD_OF_VIEW_MM: Final = (160.0, 160.0, 128.0)
"""Along the leg, front to back, side to side: SKM-TEA's 0.3125 x 0.3125 x 0.8 mm voxels at its full matrix."""
THICKEST_SLICE_MM: Final = 3.75
ACQUIRED_SHARE: Final = (416 / 512, 80 / 160)
CALIBRATION_LINES: Final = 24
SPLIT_CYCLE: Final = ("train", "test", "train", "val", "train", "test", "train", "val", "train")
"""Split of subjects 1, 2, 3, ...: fixed, so that more subjects can be added later; about SKM-TEA's shares."""
NOISE_BY_SHAPE: Final = ((LAPTOP_SHAPE, 0.003), (FULL_SHAPE, 0.005))
MASK_ACCELERATIONS: Final = (2.0, 3.0, 4.0)


@dataclass(frozen=True)
class GenerateConfig:
    """Synthetic knees."""

    subjects: int = 12
    """How many knees; finished ones in the folder are kept, so this can be raised later."""
    out: Path | None = None
    """Folder to write (default: datasets/knees-<size>)."""
    size: Literal["laptop", "full"] = "laptop"
    """laptop: 32 x 96 x 40, 10 MB per subject; full: 512 x 512 x 160, SKM-TEA's own, 3.1 GB per subject."""
    shape: Shape | None = None
    """Matrix along (x, y, z) after zero-padding, instead of a size: --shape [64,128,40]."""
    coils: Literal[8, 16] = 8
    """Receive coils."""
    noise: float | None = None
    """Standard deviation of the complex noise of a k-space sample, where cartilage has signal 0.06
    (default: chosen by matrix size, so that zero-filled SENSE at acceleration 2 is near 33 and 35 dB)."""
    seed: int = 0
    """Another seed gives another population."""
    jobs: int = 0
    """Processes (default: one per core)."""


@dataclass(frozen=True)
class FromImagesConfig:
    """Scans simulated from real magnitude images."""

    file: Path
    """Images: .npz with one array (subjects, y, z) or (echoes, slices, y, z), or .nii / .nii.gz."""
    out: Path | None = None
    """Folder to write (default: datasets/<name of the file>)."""
    key: str | None = None
    """Array of the .npz to use (default: the one with the most numbers)."""
    echoes: tuple[int, int] | None = None
    """Which two of several echoes, from 0 (default: the times nearest to 7.5 and 42.5 ms if the file has `te`)."""
    coils: Literal[8, 16] = 8
    """Simulated receive coils."""
    noise: float = 0.004
    """Standard deviation of the complex noise of a k-space sample, relative to the brightest voxel."""
    seed: int = 0
    """Seed of coils, phase and noise."""


@dataclass(frozen=True)
class ShowConfig:
    """Pictures of a data set in SKM-TEA's layout."""

    folder: Path
    """Folder that holds annotations/ and files_recon_calib-24/."""
    out: Path | None = None
    """Folder for the pictures (default: pictures/ in the data set's folder)."""
    scan: str | None = None
    """Scan to show (default: the first of the training split)."""


def acquired_grid(shape: Shape) -> tuple[int, int]:
    """The (ky, kz) grid that is acquired before zero-padding, in SKM-TEA's proportion, made even.

    >>> acquired_grid((512, 512, 160)), acquired_grid((32, 96, 40))
    ((416, 80), (78, 20))
    """
    ky, kz = (2 * round(share * n / 2) for share, n in zip(ACQUIRED_SHARE, shape[1:], strict=True))
    return ky, kz


def field_of_view(shape: Shape) -> tuple[float, float, float]:
    """Extent in mm; few slices cover less of the leg around the joint instead of becoming thick.

    >>> field_of_view((512, 512, 160)), field_of_view((32, 96, 40))
    ((160.0, 160.0, 128.0), (120.0, 160.0, 128.0))
    """
    x, y, z = FIELD_OF_VIEW_MM
    return min(x, THICKEST_SLICE_MM * shape[0]), y, z


def calibration_region(grid: tuple[int, int]) -> tuple[int, int]:
    """The centre of k-space from which maps are estimated: 24 x 24, but at most 60 % of either side, even.

    Coils are as smooth on a small grid as on a large one, so the region does not shrink with the matrix.

    >>> calibration_region((416, 80)), calibration_region((78, 20))
    ((24, 24), (24, 12))
    """
    ky, kz = (min(CALIBRATION_LINES, int(0.6 * n) // 2 * 2) for n in grid)
    return ky, kz


def check(config: GenerateConfig) -> Shape:
    """The matrix asked for, or a sentence on what is wrong with the options."""
    at_least(config, 1, "subjects")
    at_least(config, 0, "jobs")
    if config.noise is not None and not 0 <= config.noise < 1:
        raise UserError(f"--noise takes a number from 0 to 1, not {config.noise:g}.")
    shape = config.shape or (FULL_SHAPE if config.size == "full" else LAPTOP_SHAPE)
    x, y, z = shape
    if x < 1 or y < 32 or z < 24 or y % 2 or z % 2:
        raise UserError(
            f"--shape takes (x, y, z) with y >= 32 and z >= 24, both even, not {tuple(shape)}; try [32,96,40]."
        )
    return x, y, z


def default_noise(shape: Shape) -> float:
    """Noise that puts zero-filled SENSE at acceleration 2 near 33 dB (first echo) and 35 dB (second).

    Set by trial at two sizes, 0.003 for the laptop's and 0.005 for the full matrix, and between them by the
    power of the number of samples in a plane that joins the two.

    >>> [round(default_noise(shape), 4) for shape in (LAPTOP_SHAPE, (128, 256, 80), FULL_SHAPE)]
    [0.003, 0.004, 0.005]
    """
    (small, low), (large, high) = ((prod(acquired_grid(s)), v) for s, v in NOISE_BY_SHAPE)
    exponent = log(high / low) / log(large / small)
    return float(low * (prod(acquired_grid(shape)) / small) ** exponent)
