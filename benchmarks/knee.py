"""How the synthetic knees compare with what they stand in for.

    python -m benchmarks.knee FOLDER        # made by: python -m data.knee --subjects 12 --out FOLDER

For every scan: pSNR of zero-filled SENSE with the masks of the file (magnitude, on the volume, against
`target`), and the error of the stored maps against the true coils, which are drawn again from the seed.
"""

import argparse
from pathlib import Path

import h5py
import numpy as np
import torch

from data.knee.anatomy import render
from data.knee.config import acquired_grid, calibration_region, field_of_view
from data.knee.scanner import Protocol, Scanner
from data.knee.subject import Subject
from data.scans.sense import Sense, centre
from data.scans.skm_tea.layout import SCANS, mask_key
from data.scans.skm_tea.scan import SkmTeaScan

ACCELERATIONS = (2.0, 3.0, 4.0)


def psnr(scan: SkmTeaScan, acceleration: float, echo: int) -> float:
    """20 log10(max |target| / RMSE of magnitudes) over the volume."""
    mask = torch.zeros(scan.matrix_shape[1:])
    stored = scan.mask(acceleration)
    assert stored is not None, f"{scan.scan_id} has no {mask_key(acceleration)}"
    ky, kz = (centre(inner, outer) for inner, outer in zip(stored.shape, mask.shape, strict=True))
    mask[ky, kz] = stored.float()
    squares, highest = 0.0, 0.0
    for index in range(scan.num_slices):
        kspace, maps, target = scan.read(index, echo)
        error = Sense(maps, mask).adjoint(kspace).abs() - target.abs()
        squares += float(error.square().sum())
        highest = max(highest, float(target.abs().max()))
    return float(20 * np.log10(highest / np.sqrt(squares / np.prod(scan.matrix_shape))))


def map_error(scan: SkmTeaScan, step: int) -> float:
    """RMS over the anatomy, both maps with unit sum of squares and their phase aligned; every `step`-th slice."""
    with h5py.File(scan.path) as file:
        seed, noise, coils = (file.attrs[name] for name in ("subject_seed", "noise", "coils"))
    shape, grid = scan.matrix_shape, acquired_grid(scan.matrix_shape)
    protocol = Protocol(shape, field_of_view(shape), grid, calibration_region(grid), int(coils), float(noise))
    coil_array, subject = Scanner(protocol, int(seed)).coil_array, Subject(int(seed))
    errors = []
    for index in range(0, scan.num_slices, step):
        axes = protocol.axes(slice(index, index + 1))
        true = torch.from_numpy(coil_array.on(axes)[:, 0])
        true = true / true.abs().square().sum(0).sqrt()
        maps = scan.read(index, 0)[1]
        overlap = (maps.conj() * true).sum(0)
        difference = (maps * overlap / overlap.abs() - true).abs().square().sum(0)
        errors.append(difference[torch.from_numpy(render(subject, axes).labels[0] > 0)])
    return float(torch.cat(errors).mean().sqrt())


def main() -> None:
    """Print a line a scan, then the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of a data set in the layout of SKM-TEA")
    folder = parser.parse_args().data / SCANS
    if not any(folder.glob("*.h5")):
        parser.error(f"there are no scans in {folder}; python -m data.knee makes some.")
    rows = []
    print("scan      " + "".join(f"acc {a:g}: E1    E2     " for a in ACCELERATIONS) + "map error")
    for path in sorted(folder.glob("*.h5")):
        scan = SkmTeaScan(path)
        values = [psnr(scan, a, echo) for a in ACCELERATIONS for echo in (0, 1)]
        rows.append([*values, 100 * map_error(scan, max(1, scan.num_slices // 32))])
        print(f"{scan.scan_id:9s} " + "  ".join(f"{value:6.2f}" for value in rows[-1]) + " %")
    print("mean      " + "  ".join(f"{value:6.2f}" for value in np.mean(rows, axis=0)) + " %")
    print("std       " + "  ".join(f"{value:6.2f}" for value in np.std(rows, axis=0)) + " %")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
