"""One fastMRI multicoil file, read slice by slice.

    kspace               complex64 (slices, coils, H, W)   centred; W is the phase encoding
    reconstruction_rss   float32 (slices, h, w)            root sum of squares, cropped; not in test files
    mask                 (W,)                              in test files, which are undersampled
    ismrmrd_header       XML

fastMRI has no complex target and no maps. Maps are estimated by ESPIRiT; the target is the SENSE combination
of the fully sampled k-space with them, as in SKM-TEA, and the distributed root-sum-of-squares image stays beside it.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.hdf5 import Hdf5File
from data.scans.maps import EstimatedMaps
from data.scans.mrd.header import parse_header
from data.scans.scan import Scan, Timing
from data.scans.sense import Sense
from lab.paths import plain_name

KSPACE, RSS, HEADER, MASK = "kspace", "reconstruction_rss", "ismrmrd_header", "mask"


class FastMriScan(Scan):
    """A multicoil file; one echo.

    `acquired_grid` is (H, the lines that the header says were acquired), since fastMRI pads some scans with zeros.
    """

    origin = "fastMRI"
    three_dimensional = False

    def __init__(self, path: str | Path) -> None:
        self.file = Hdf5File(path)
        self.path = self.file.path
        self.scan_id = plain_name(self.path.stem, f"the name of {self.path}")
        slices, coils, height, width = self.file.check(KSPACE, "complex64", (None, None, None, None))
        header = parse_header(self.file.text(HEADER), self.path)
        self.undersampled = MASK in self.file
        if not self.undersampled:
            self.file.check(RSS, "float32", (slices, None, None))
        self.matrix_shape = (slices, height, width)
        self.num_coils = coils
        self.acquired_grid = (height, min(width, header.centred_lines()))
        self.orientation = self._orientation()
        x, y, z = header.encoded.spacing
        self.voxel_spacing = (z, x, y)
        self.timing = Timing(**header.timing) if len(header.timing) == len(Timing._fields) else None
        self._maps = EstimatedMaps(self)
        self.file.close()

    def _orientation(self) -> tuple[str, str, str]:
        """By the name of the acquisition: files do not say how slices lie, nor which end of an axis is which."""
        name = str(self.file.attributes().get("acquisition", "")).upper()
        planes = {"COR": ("AP", "SI", "LR"), "SAG": ("LR", "SI", "AP")}  # knees, CORPD_FBK; brains are AX...
        return next((axes for plane, axes in planes.items() if name.startswith(plane)), Scan.orientation)

    @property
    def maps_are(self) -> str:  # type: ignore[override]
        return str(self._maps)

    def kspace(self, slice_index: int, echo: int = 0) -> NDArray[np.complex64]:
        found: NDArray[np.complex64] = self.file.read(KSPACE, slice_index)
        return found

    def read(self, slice_index: int, echo: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """K-space (coils, H, W), maps (coils, H, W) and target (H, W); all maps are estimated at the first call."""
        kspace = torch.from_numpy(self.kspace(slice_index))
        maps = torch.from_numpy(np.array(self._maps.mapped[slice_index]))
        return kspace, maps, Sense(maps).adjoint(kspace)

    def rss(self, slice_index: int) -> Tensor:
        """The distributed root-sum-of-squares image (h, w), cropped by fastMRI to the field of view of interest."""
        return torch.from_numpy(self.file.read(RSS, slice_index))
