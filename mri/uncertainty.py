"""How far a reconstruction can be trusted, voxel by voxel: its spread when parts of the samples are left out.

The samples are dealt out into eight parts, and the scan is reconstructed eight times, each time without one of them.
Where the result hangs on a few samples, the eight differ. Their spread sigma follows the error but is not equal to it:
what no sample tells, none of the eight knows. So a factor is chosen on validation scans,

    half-width = factor sigma,    the factor such that |error of the magnitude| is below it in 90 % of the voxels,

and is kept beside the weights, one for each acceleration. How often it holds on other scans is the coverage, which
`python -m mri.eval --uncertainty` reports.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.masks.pool import stable_seed
from data.scans.scan import Scan
from lab.errors import UserError, readable
from lab.files import read_table, write_json
from mri.metrics import Complex
from mri.predictor import Predictor
from mri.sampling import measured

PARTS = 8
LEVEL = 0.9
"""Share of the voxels in which the error should be below the half-width."""
WINDOW = 5
"""Side of the square over which the variance is averaged: of eight numbers alone it would be rough."""
ANATOMY = 0.05
"""Voxels darker than this share of the brightest are air, and do not count."""
CENTRE = 4
"""Side of the square in the middle of k-space that no part has: without it no method knows the contrast."""
FILE = "uncertainty.json"

Real = NDArray[np.float32]


def parts(mask: Tensor, seed: int) -> list[Tensor]:
    """The mask (ky, kz) eight times, each time without another eighth of its samples; the centre is always there.

    >>> left = parts(torch.ones(12, 10, dtype=torch.bool), 0)
    >>> len(left), int(sum(~one for one in left).sum())
    (8, 104)
    """
    generator = torch.Generator().manual_seed(seed)
    part = torch.randint(PARTS, mask.shape, generator=generator)
    ky, kz = (slice(max(n // 2 - CENTRE // 2, 0), n // 2 + CENTRE // 2) for n in mask.shape)
    part[ky, kz] = PARTS
    return [mask & (part != number).to(mask.device) for number in range(PARTS)]


def spread(
    predictor: Predictor,
    scan: Scan,
    mask: Tensor,
    slices: Sequence[int] | None = None,
    advance: Callable[[int], None] = lambda images: None,
) -> Real:
    """sigma of the magnitude (echoes, slices, ky, kz): the jackknife's standard error, smoothed within the slices."""
    from scipy.ndimage import uniform_filter

    count = scan.num_slices if slices is None else len(slices)
    total, squares = np.zeros((2, scan.num_echoes, count, *scan.matrix_shape[1:]))
    for left in parts(mask, stable_seed(scan.scan_id, "parts")):
        for echo, image in enumerate(predictor.reconstruct(scan, left, slices, advance)):
            magnitude = np.abs(image).astype(np.float64)
            total[echo] += magnitude
            squares[echo] += magnitude**2
    sigma = np.empty(total.shape, np.float32)
    for place in np.ndindex(total.shape[:2]):
        variance = (PARTS - 1) * np.maximum(squares[place] / PARTS - (total[place] / PARTS) ** 2, 0)
        sigma[place] = np.sqrt(np.maximum(uniform_filter(variance, WINDOW), 0))
    return sigma


def anatomy(image: Complex) -> NDArray[np.bool_]:
    """Where there is signal."""
    found: NDArray[np.bool_] = np.abs(image) > ANATOMY * np.abs(image).max()
    return found


def ratios(image: Complex, truth: Complex, sigma: Real) -> NDArray[np.float64]:
    """|error of the magnitude| / sigma in every voxel of the anatomy."""
    inside = anatomy(image)
    error = np.abs(np.abs(image) - np.abs(truth))[inside].astype(np.float64)
    return error / np.maximum(sigma[inside], np.finfo(np.float32).tiny)


def keep(folder: Path, acc: float, factor: float, scans: Sequence[str]) -> None:
    """Keep a factor beside the weights."""
    path, content = folder / FILE, {"factor": factor, "scans": list(scans)}
    known = _read(path)["factors"] if path.is_file() else {}
    write_json(path, {"level": LEVEL, "factors": {**known, f"{acc:g}": content}})


def half_width(
    predictor: Predictor,
    scan: Scan,
    mask: Tensor | None,
    folder: Path,
    advance: Callable[[int], None] = lambda images: None,
) -> tuple[Real, float]:
    """Half-widths (slices, ky, kz, echoes) with the factor kept in `folder`, and the acceleration it was chosen for."""
    if scan.undersampled:  # slice by slice, as each was sampled
        mask, acceleration = torch.ones(scan.matrix_shape[1:], dtype=torch.bool), scan.sampling.acceleration
    else:
        mask = measured(scan.read(scan.num_slices // 2, 0)[0]) if mask is None else mask
        acceleration = scan.acquired_grid[0] * scan.acquired_grid[1] / max(int(mask.sum()), 1)
    factor, nearest = kept_factor(folder, acceleration)
    return factor * np.moveaxis(spread(predictor, scan, mask, advance=advance), 0, -1), nearest


def _read(path: Path) -> dict[str, Any]:
    """What is kept: by acceleration, a factor and the scans that it was chosen on."""
    with readable(path, "delete it and calibrate again"):
        found = read_table(path)
        if not all(
            float(acc) > 0 and 0 < float(each["factor"]) < np.inf for acc, each in found["factors"].items()
        ):
            raise ValueError("factors and accelerations are positive numbers")
        if not found["factors"]:
            raise ValueError("there are no factors")
        return found


def kept_factor(folder: Path, acceleration: float) -> tuple[float, float]:
    """The factor for the acceleration nearest to this one, and that acceleration."""
    path = folder / FILE
    if not path.is_file():
        raise UserError(
            f"--uncertainty needs weights that were calibrated, but there is no {path}; run: "
            f"python -m mri.eval --only {folder.name} --uncertainty true"
        )
    factors = {float(acc): float(found["factor"]) for acc, found in _read(path)["factors"].items()}
    nearest = min(factors, key=lambda acc: abs(np.log(acc / acceleration)))
    return factors[nearest], nearest
