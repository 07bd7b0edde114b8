"""Small files in the exact layouts of SKM-TEA and fastMRI, for tests."""

from pathlib import Path

import h5py
import numpy as np
import torch

from data.scans.sense import Sense, ifft2c
from data.scans.skm_tea.layout import ScanRecord, create_scan, mask_key, scan_path, write_annotations

SHAPE = (5, 24, 16)
ACQUIRED = (20, 12)


def smooth_maps(coils: int, height: int, width: int) -> torch.Tensor:
    """Coil sensitivities around the object, normalised: complex64 (coils, height, width)."""
    y, x = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    angle = torch.arange(coils).view(-1, 1, 1) * 2 * torch.pi / coils
    distance = (y - 1.2 * angle.sin()) ** 2 + (x - 1.2 * angle.cos()) ** 2
    maps = torch.exp(-distance / 2) * torch.exp(1j * (angle + x * angle.cos() + y * angle.sin()))
    return (maps / maps.abs().square().sum(0).sqrt()).to(torch.complex64)


def skm_tea_scan(path: Path, shape: tuple[int, int, int] = SHAPE, coils: int = 4, seed: int = 0) -> None:
    """Write a scan of random images whose k-space, maps and target agree."""
    generator = torch.Generator().manual_seed(seed)
    maps = smooth_maps(coils, *shape[1:])
    with create_scan(path, shape, coils) as file:
        for x in range(shape[0]):
            image = torch.randn(2, *shape[1:], dtype=torch.complex64, generator=generator) * (1 + seed)
            file["kspace"][x] = Sense(maps)(image).permute(2, 3, 0, 1).numpy()
            file["maps"][x] = maps.permute(1, 2, 0).unsqueeze(-1).numpy()
            file["target"][x] = image.permute(1, 2, 0).unsqueeze(-1).numpy()
        mask = np.zeros(ACQUIRED, bool)
        mask[::2] = True
        file[mask_key(4)] = mask


def record(number: int, shape: tuple[int, int, int] = SHAPE) -> ScanRecord:
    """The annotation of a scan."""
    return ScanRecord(number, f"MTR_{number:03}.h5", f"MTR_{number:03}", number, (0.5, 0.6, 1.5), shape)


def skm_tea_root(root: Path) -> Path:
    """A data set of four training scans (one of another shape) and two test scans (one with more coils)."""
    train = [record(1), record(2), record(3, (5, 24, 18)), record(4)]
    test = [record(11), record(12)]
    for one in (*train, *test):
        coils = 6 if one.id == 12 else 4
        skm_tea_scan(scan_path(root, one.file_name), one.matrix_shape, coils, seed=one.id)
    write_annotations(root, "train", train, "small files for tests")
    write_annotations(root, "test", test, "small files for tests")
    return root


HEADER = """<?xml version="1.0"?>
<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD"><encoding>
  <encodedSpace>
    <matrixSize><x>{height}</x><y>{width}</y><z>1</z></matrixSize>
    <fieldOfView_mm><x>{height}</x><y>{fov}</y><z>4.5</z></fieldOfView_mm>
  </encodedSpace>
  <encodingLimits><kspace_encoding_step_1>
    <minimum>0</minimum><maximum>{maximum}</maximum><center>{center}</center>
  </kspace_encoding_step_1></encodingLimits>
</encoding></ismrmrdHeader>
"""


def fastmri_scan(path: Path, height: int = 48, width: int = 40, slices: int = 2, coils: int = 4) -> None:
    """Write a multicoil file of blurred ellipses, zero-padded by two lines on either side of W, fastMRI's scale."""
    path.parent.mkdir(parents=True, exist_ok=True)
    maps = smooth_maps(coils, height, width)
    y, x = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    kspace = torch.zeros(slices, coils, height, width, dtype=torch.complex64)
    for index in range(slices):
        image = torch.sigmoid(40 * (0.6 - (x / (0.8 + 0.1 * index)) ** 2 - y**2)) * (
            1 + 0.3 * torch.sin(9 * x)
        )
        kspace[index] = 1e-5 * Sense(maps)(image.to(torch.complex64))
    kspace[..., :2] = kspace[..., -2:] = 0
    rss = ifft2c(kspace).abs().square().sum(1).sqrt()[:, 8:-8, 4:-4]
    with h5py.File(path, "w") as file:
        file["kspace"] = kspace.numpy()
        file["reconstruction_rss"] = rss.numpy()
        file["ismrmrd_header"] = HEADER.format(
            height=height, width=width, fov=2 * width, maximum=width - 5, center=width // 2 - 2
        )
