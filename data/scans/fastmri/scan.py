"""One fastMRI multicoil file, read slice by slice.

    kspace               complex64 (slices, coils, H, W)   fully sampled, centred; W is the phase encoding
    reconstruction_rss   float32 (slices, h, w)            root sum of squares, cropped
    ismrmrd_header       XML

fastMRI has no complex target and no maps. Maps are estimated by ESPIRiT; the target is the SENSE combination
of the fully sampled k-space with them, as in SKM-TEA, and the distributed root-sum-of-squares image stays beside it.
"""

from pathlib import Path

import torch
from torch import Tensor

from data.hdf5 import Hdf5File
from data.scans.fastmri.espirit import cached_maps
from data.scans.fastmri.header import parse_header
from data.scans.scan import Scan
from data.scans.sense import Sense
from lab.errors import UserError
from lab.paths import datasets_dir, plain_name
from lab.progress import Progress

KSPACE, RSS, HEADER, MASK = "kspace", "reconstruction_rss", "ismrmrd_header", "mask"


class FastMriScan(Scan):
    """A fully sampled multicoil file (the train and val folders); one echo.

    `acquired_grid` is (H, the lines that the header says were acquired), since fastMRI pads some scans with zeros.
    """

    origin = "fastMRI"

    def __init__(self, path: str | Path, cache: str | Path | None = None) -> None:
        self.file = Hdf5File(path)
        self.path = self.file.path
        self.scan_id = plain_name(self.path.stem, f"the name of {self.path}")
        self._cache = Path(cache or datasets_dir() / "fastmri_maps")
        if MASK in self.file:
            raise UserError(
                f"{path} is undersampled (it has a mask), so it has no target; use the train or val files."
            )
        slices, coils, height, width = self.file.check(KSPACE, "complex64", (None, None, None, None))
        header = parse_header(self.file.text(HEADER), self.path)
        self.file.check(RSS, "float32", (slices, None, None))
        self.matrix_shape = (slices, height, width)
        self.num_coils = coils
        self.acquired_grid = (height, header.centred_lines(width))
        self.voxel_spacing = header.voxel_spacing
        self.file.close()

    def read(self, slice_index: int, echo: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """K-space (coils, H, W), maps (coils, H, W) and target (H, W); maps are estimated at the first call."""
        kspace = self.file.read(KSPACE, slice_index)
        maps = torch.from_numpy(cached_maps(self._maps_path(slice_index), kspace))
        kspace = torch.from_numpy(kspace)
        return kspace, maps, Sense(maps).adjoint(kspace)

    def rss(self, slice_index: int) -> Tensor:
        """The distributed root-sum-of-squares image (h, w), cropped by fastMRI to the field of view of interest."""
        return torch.from_numpy(self.file.read(RSS, slice_index))

    def estimate_maps(self) -> None:
        """Estimate what is missing of the maps now, with a progress bar, instead of at the first reading."""
        missing = [index for index in range(self.num_slices) if not self._maps_path(index).exists()]
        if missing:
            with Progress(len(missing), f"ESPIRiT maps of {self.scan_id}", unit="slice") as progress:
                for slice_index in missing:
                    cached_maps(self._maps_path(slice_index), self.file.read(KSPACE, slice_index))
                    progress.advance()

    def _maps_path(self, slice_index: int) -> Path:
        return self._cache / f"{self.scan_id}-{self.file_key}" / f"{slice_index:03}.npy"
