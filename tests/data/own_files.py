"""Scans of one's own, written byte by byte or by other people's libraries, never by the suite's code."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from tests.data.mri_files import smooth_maps

COILS, PLANE = 4, (48, 40)


def centred_fft(image: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """K-space as everybody writes it in numpy: frequency zero in the middle."""
    shifted = np.fft.ifftshift(image, axes=axes)
    return np.fft.fftshift(np.fft.fftn(shifted, axes=axes, norm="ortho"), axes=axes)


def phantom(slices: int = 3, plane: tuple[int, int] = PLANE) -> np.ndarray:
    """Images (slices, y, z): an ellipse with stripes, growing from slice to slice."""
    y, z = np.meshgrid(np.linspace(-1, 1, plane[0]), np.linspace(-1, 1, plane[1]), indexing="ij")
    sizes = np.linspace(0.7, 0.9, slices)
    stripes = 1 + 0.3 * np.sin(9 * z) + 0.2 * np.cos(7 * y)
    images = [1 / (1 + np.exp(-40 * (0.6 - (z / size) ** 2 - (y / size) ** 2))) * stripes for size in sizes]
    return np.stack(images).astype(np.complex64)


def maps(plane: tuple[int, int] = PLANE, coils: int = COILS) -> np.ndarray:
    """True sensitivities (coils, y, z), with unit sum of squares."""
    return smooth_maps(coils, *plane).numpy()


def kspace(slices: int = 3, plane: tuple[int, int] = PLANE, noise: float = 1e-3, seed: int = 0) -> np.ndarray:
    """K-space (slices, coils, ky, kz) of the phantom, with a little noise so that no sample is zero."""
    full = centred_fft(phantom(slices, plane)[:, None] * maps(plane), axes=(-2, -1))
    rng = np.random.default_rng(seed)
    white = rng.standard_normal(full.shape) + 1j * rng.standard_normal(full.shape)
    return (full + noise * white).astype(np.complex64)


def lines(plane: tuple[int, int] = PLANE, every: int = 3, calibration: int = 16) -> np.ndarray:
    """A mask (ky, kz) of every third line along kz and a calibration region."""
    mask = np.zeros(plane, bool)
    mask[:, plane[1] // 2 % every :: every] = True
    mask[:, plane[1] // 2 - calibration // 2 : plane[1] // 2 + calibration // 2] = True
    return mask


def write_cfl(path: Path, array: np.ndarray, sizes: Sequence[int]) -> Path:
    """A BART array, byte by byte: `array` has the axes of `sizes` without those of length 1."""
    path.parent.mkdir(parents=True, exist_ok=True)
    words = " ".join(str(size) for size in [*sizes, *[1] * (16 - len(sizes))])
    path.with_suffix(".hdr").write_bytes(f"# Dimensions\n{words}\n# Command\nphantom\n".encode())
    path.with_suffix(".cfl").write_bytes(array.astype("<c8").tobytes(order="F"))
    return path.with_suffix(".cfl")


XML = """<?xml version="1.0"?>
<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">
  <experimentalConditions><H1resonanceFrequency_Hz>128000000</H1resonanceFrequency_Hz></experimentalConditions>
  <encoding>
    <encodedSpace><matrixSize><x>{enc_x}</x><y>{y}</y><z>{z}</z></matrixSize>
      <fieldOfView_mm><x>{fov_x}</x><y>{y}</y><z>{fov_z}</z></fieldOfView_mm></encodedSpace>
    <reconSpace><matrixSize><x>{x}</x><y>{y}</y><z>{z}</z></matrixSize>
      <fieldOfView_mm><x>{x}</x><y>{y}</y><z>{fov_z}</z></fieldOfView_mm></reconSpace>
    <encodingLimits>
      <kspace_encoding_step_1><minimum>0</minimum><maximum>{last_y}</maximum><center>{mid_y}</center></kspace_encoding_step_1>
      <kspace_encoding_step_2><minimum>0</minimum><maximum>{last_z}</maximum><center>{mid_z}</center></kspace_encoding_step_2>
    </encodingLimits>
    <trajectory>cartesian</trajectory>
    <parallelImaging><accelerationFactor><kspace_encoding_step_1>1</kspace_encoding_step_1>
      <kspace_encoding_step_2>1</kspace_encoding_step_2></accelerationFactor>
      <calibrationMode>{mode}</calibrationMode></parallelImaging>
  </encoding>
  <sequenceParameters><TR>25</TR><TE>7.5</TE><flipAngle_deg>30</flipAngle_deg></sequenceParameters>
</ismrmrdHeader>"""


def xml(
    x: int, y: int, z: int, *, oversampling: int = 2, mode: str = "embedded", fov_z: float | None = None
) -> str:
    """A header: readout oversampled, 1 mm voxels; slices 4 mm thick where z is 1."""
    depth = fov_z or (4 if z == 1 else z)
    middle = {"mid_y": y // 2, "mid_z": z // 2, "last_y": y - 1, "last_z": z - 1}
    sizes = {"x": x, "y": y, "z": z, "enc_x": oversampling * x, "fov_x": oversampling * x, "fov_z": depth}
    return XML.format(**sizes, **middle, mode=mode)


def acquisition(samples: np.ndarray, *flags: int, position: Sequence[float] = (0, 0, 0), **idx: int):  # type: ignore[no-untyped-def]
    """One line (coils, samples) with its counters, by the package `ismrmrd`."""
    import ismrmrd

    line = ismrmrd.Acquisition.from_array(np.ascontiguousarray(samples, np.complex64))
    line.center_sample = samples.shape[1] // 2
    line.sample_time_us = 5.0
    line.position[:] = position
    line.read_dir[:], line.phase_dir[:], line.slice_dir[:] = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    for name, value in idx.items():
        setattr(line.idx, name, value)
    for flag in flags:
        line.setFlag(flag)
    return line


def write_mrd(path: Path, header: str, acquisitions: Sequence[object]) -> Path:
    """An ISMRMRD file by the package `ismrmrd`."""
    import ismrmrd

    path.parent.mkdir(parents=True, exist_ok=True)
    with ismrmrd.Dataset(str(path), "dataset", mode="w") as file:
        file.write_xml_header(header.encode())
        for one in acquisitions:
            file.append_acquisition(one)
    return path


def oversampled(coil_images: np.ndarray, axis: int) -> np.ndarray:
    """Images twice as wide along the readout, zero at both ends, as the scanner measures them."""
    n = coil_images.shape[axis]
    wide = [(0, 0)] * coil_images.ndim
    wide[axis] = (n - n // 2, n // 2)
    return np.pad(coil_images, wide)


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(array))
