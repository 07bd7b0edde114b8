"""Coil sensitivities by ESPIRiT, kept on disk because they cost far more than reading them."""

import zipfile
from pathlib import Path

import numpy as np

from lab.errors import UserError
from lab.files import atomic_path

CALIBRATION_WIDTH = 24
KERNEL_WIDTH = 6


def espirit_maps(kspace: np.ndarray) -> np.ndarray:
    """Maps (coils, H, W) of fully sampled k-space (coils, H, W): sum_c |S_c|^2 = 1 where there is signal, else 0.

    The calibration region is 24 x 24 (less on smaller grids), the kernel 6 x 6; the phase is that of the first coil.
    """
    import sigpy.mri.app

    width = min(CALIBRATION_WIDTH, *kspace.shape[1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        calibration = sigpy.mri.app.EspiritCalib(
            kspace, calib_width=width, kernel_width=KERNEL_WIDTH, show_pbar=False
        )
        maps = np.asarray(calibration.run(), np.complex64)
    return np.nan_to_num(maps)  # in an empty slice the phase is 0 / 0


def cached_maps(path: Path, kspace: np.ndarray) -> np.ndarray:
    """The maps kept at `path`; estimated and put there if there are none."""
    if not path.exists():
        with atomic_path(path) as temporary:
            np.save(temporary, espirit_maps(kspace))
    try:
        maps: np.ndarray = np.load(path)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path} is not a file of maps ({error}); delete it and they are estimated again."
        ) from error
    if maps.shape != kspace.shape:
        raise UserError(f"{path} holds maps of shape {maps.shape} for k-space of {kspace.shape}; delete it.")
    return maps
