"""Coil maps of a scan by ESPIRiT, estimated once, all slices together, and kept on disk."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from data.scans.espirit import Espirit, MapEstimator
from data.scans.mapped import Mapped, write_array
from data.scans.sampling import Sampling
from data.scans.sense import centre
from lab.errors import UserError
from lab.files import fingerprint
from lab.paths import datasets_dir
from lab.progress import Progress

if TYPE_CHECKING:
    from data.scans.scan import Scan

SMALLEST = 6
"""Points along each axis that a calibration region needs: the width of ESPIRiT's kernel."""
AT_ONCE = 64
"""Slices times coils that are estimated together."""


class EstimatedMaps:
    """Maps (slice, coil, ky, kz) of a scan, from the calibration region of its first echo or a calibration scan."""

    def __init__(
        self, scan: "Scan", calibration: Mapped | None = None, method: Espirit | None = None
    ) -> None:
        self.scan, self.calibration, self.method = scan, calibration, method or Espirit()
        self._mapped: Mapped | None = None

    def __str__(self) -> str:
        ky, kz = self.region
        return f"by ESPIRiT from {ky} x {kz} samples{' of a calibration scan' if self.calibration else ''}"

    @property
    def region(self) -> tuple[int, int]:
        """(ky, kz) samples around the centre that calibrate."""
        sampling = self.scan.sampling
        if self.calibration is not None:
            sampling = Sampling.of(self.calibration[self.scan.num_slices // 2, 0])
        ky, kz = (min(n, most) for n, most in zip(sampling.calibration, self.method.region, strict=True))
        return ky, kz

    @property
    def mapped(self) -> Mapped:
        """The maps; estimated, with a progress bar, if that was not done before."""
        if self._mapped is None:
            key = fingerprint([self.scan.file_key, asdict(self.method)])
            path = datasets_dir() / "maps" / f"{self.scan.scan_id}-{key}.npy"
            if not path.exists():
                self._check()
                shape = (self.scan.num_slices, self.scan.num_coils, *self.scan.matrix_shape[1:])
                write_array(path, shape, self._estimate)
            try:
                self._mapped = Mapped(path)
                _ = self._mapped.array
            except UserError as error:
                raise UserError(
                    f"{path} is not a whole file of maps; delete it and they are estimated again."
                ) from error
        return self._mapped

    def _estimate(self, array: NDArray[np.complex64]) -> None:
        scan, count = self.scan, self.scan.num_slices
        step = max(1, AT_ONCE // scan.num_coils)
        estimate = MapEstimator(scan.matrix_shape[1:], self.method)
        with Progress(count, f"coil maps of {scan.scan_id}", unit="slice") as progress, torch.no_grad():
            for first in range(0, count, step):
                some = range(first, min(first + step, count))
                regions = torch.from_numpy(np.stack([self._region(index) for index in some]))
                array[first : first + len(some)] = estimate(regions).numpy()
                progress.advance(len(some))

    def _region(self, slice_index: int) -> NDArray[np.complex64]:
        """Calibration k-space (coil, ky, kz) of a slice."""
        whole = (
            self.scan.kspace(slice_index) if self.calibration is None else self.calibration[slice_index, 0]
        )
        ky, kz = (centre(inner, outer) for inner, outer in zip(self.region, whole.shape[1:], strict=True))
        return np.ascontiguousarray(whole[:, ky, kz], np.complex64)

    def _check(self) -> None:
        if min(self.region) < min(SMALLEST, *self.scan.matrix_shape[1:]):
            ky, kz = self.region
            raise UserError(
                f"{self.scan.path} has no coil maps, and its fully sampled centre of {ky} x {kz} is too small to "
                f"estimate them ({SMALLEST} x {SMALLEST} at least); give maps with the scan."
            )
