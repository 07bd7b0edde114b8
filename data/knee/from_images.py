"""Real magnitude images as scans: simulated coils, phase and noise, in SKM-TEA's layout, and marked so.

Magnitudes that a scanner has processed make a simulated experiment look easier than a real one ("Subtle data
crimes", Shimron et al., PNAS 119, 2022): zero-padded k-space, once magnitude is taken, hides a smaller
problem, and images without phase and noise have a symmetric, clean k-space. So padding is cropped off, and
phase and noise are added. Coils stay simulated.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from data.knee.config import FromImagesConfig, calibration_region
from data.knee.generate import protocol_attributes, scan_names, slab_rows, write_splits
from data.knee.scanner import Protocol, Scanner, write_scan
from data.knee.tissue import ECHO_MS
from data.parallel import one_thread
from data.scans.skm_tea.layout import scan_path
from lab.errors import UserError, readable
from lab.files import fingerprint
from lab.paths import datasets_dir
from lab.progress import Progress

VERSION: Final = 1
PLANE_MM: Final = 160.0
"""Extent of the longer side where the file does not tell it: coils are then placed around this field of view."""
FACTOR: Final = 8
"""Sides are trimmed to a multiple of this, so that they factor well."""


@dataclass
class Images:
    """Magnitudes (echoes, slices, y, z) of each subject, brightest voxel 1, and their spacing in mm."""

    subjects: list[NDArray[np.float32]]
    spacing: tuple[float, float, float]
    echo_times: list[float] | None


def from_images(config: FromImagesConfig) -> Path:
    """Convert a file and return the folder of the new data set."""
    path = config.file
    if not path.is_file():
        raise UserError(f"there is no file {path}; name an .npz, .nii or .nii.gz file.")
    if not 0 <= config.noise < 1:
        raise UserError(f"--noise takes a number from 0 to 1, not {config.noise:g}.")
    images = read_images(path, config)
    root = config.out or datasets_dir() / path.name.split(".")[0]
    echoes, x, y, z = images.subjects[0].shape
    dx, dy, dz = images.spacing
    extent, region = (x * dx, y * dy, z * dz), calibration_region((y, z))
    protocol = Protocol((x, y, z), extent, (y, z), region, config.coils, config.noise)
    content = [float(np.abs(volume).sum(dtype=np.float64)) for volume in images.subjects]
    described = {"protocol": asdict(protocol), "seed": config.seed, "version": VERSION, "content": content}
    identity = fingerprint(described)
    names, missing = scan_names(root, len(images.subjects), identity)
    with one_thread(), Progress(len(names), f"scans of {path.name}", unit="scan") as progress:
        for number, (name, volume) in enumerate(zip(names, images.subjects, strict=True), start=1):
            if name not in missing:
                progress.skip(1)
                continue
            attributes = {
                "origin": "real magnitudes, simulated coils",
                "description": "Coils, phase and noise are simulated; results are not those of a real scanner.",
                "source": path.name,
                "source_echo_ms": json.dumps(images.echo_times),
                **protocol_attributes(protocol),
                "version": VERSION,
                "fingerprint": identity,
            }
            scanner = Scanner(protocol, seed=config.seed * 100_003 + number)
            slabs = ((rows, volume[:, rows]) for rows in slab_rows(protocol.shape))
            write_scan(scan_path(root, f"{name}.h5"), scanner, slabs, echoes, {}, attributes)
            progress.advance()
    write_splits(root, names, protocol, f"Real magnitudes of {path.name} with simulated coils; not SKM-TEA")
    return root


def read_images(path: Path, config: FromImagesConfig) -> Images:
    """Read magnitudes, crop zero-padding and trim the sides."""
    with readable(path):
        if path.suffix == ".npz":
            array, times, spacing = _read_npz(path, config.key)
        elif path.name.endswith((".nii", ".nii.gz")):
            array, spacing = _read_nifti(path)
            times = None
        else:
            raise UserError(f"{path} is neither .npz nor .nii nor .nii.gz.")
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all() or not array.any():
        raise UserError(f"{path} must hold finite, real magnitudes that are not all zero.")
    magnitudes = np.abs(array).astype(np.float32)
    if magnitudes.ndim == 3:
        subjects, chosen = [one[None, None] for one in magnitudes], None
        if path.suffix != ".npz":
            subjects = [magnitudes[None]]
    elif magnitudes.ndim == 4:
        first, second = config.echoes or _nearest_echoes(times, len(magnitudes))
        if not (0 <= first < len(magnitudes) and 0 <= second < len(magnitudes)):
            raise UserError(
                f"--echoes takes two numbers from 0 to {len(magnitudes) - 1}, not {first} and {second}."
            )
        subjects = [magnitudes[[first, second]]]
        chosen = None if times is None else [float(times[first]), float(times[second])]
    else:
        raise UserError(
            f"{path} holds an array of shape {array.shape}; expected (subjects, y, z) or (echoes, slices, y, z)."
        )
    if min(subjects[0].shape[2:]) < 32:
        raise UserError(
            f"{path}: planes of {subjects[0].shape[2:]} voxels are too small; 32 x 32 is the least."
        )
    share = kept_share(np.concatenate([s[0] for s in subjects]))
    subjects = [_trim(one, share) for one in subjects]
    spacing = tuple(mm / s for mm, s in zip(spacing, (1.0, *share), strict=True))
    return Images([one / one.max() for one in subjects], (spacing[0], spacing[1], spacing[2]), chosen)


def _read_npz(
    path: Path, key: str | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, tuple[float, ...]]:
    try:
        with np.load(path) as file:
            name = key or max(file.files, key=lambda k: file[k].size)
            if name not in file.files:
                raise UserError(f"{path} has no array {name!r}; it holds {', '.join(file.files)}.")
            array = file[name]
            times = file["te"] if "te" in file.files else None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as .npz ({error}).") from error
    in_plane = PLANE_MM / max(array.shape[-2:])
    return array, times, (4.0, in_plane, in_plane)


def _read_nifti(path: Path) -> tuple[NDArray[np.float64], tuple[float, ...]]:
    try:
        import nibabel
    except ImportError as error:
        raise UserError("NIfTI files need nibabel; run: pip install 'monarch-science[nifti]'.") from error
    try:
        image: Any = nibabel.load(path)
        array = np.asarray(image.dataobj)
    except (OSError, EOFError, ValueError, nibabel.filebasedimages.ImageFileError) as error:
        raise UserError(f"{path} cannot be read as NIfTI ({error}).") from error
    spacing = tuple(float(mm) for mm in image.header.get_zooms()[:3])
    return (np.moveaxis(array, 3, 0) if array.ndim == 4 else array), spacing


def _nearest_echoes(times: NDArray[np.float64] | None, count: int) -> tuple[int, int]:
    """The echoes nearest to qDESS's two; the first and the last if the times are unknown."""
    if times is None or len(times) != count:
        return 0, count - 1
    first, second = (int(np.argmin(np.abs(np.asarray(times) - wanted))) for wanted in ECHO_MS)
    return first, second


def kept_share(planes: NDArray[np.float32]) -> tuple[float, float]:
    """The share of each side of k-space that was acquired: all of it, or what lies within a sudden drop.

    Zero-padding survives the magnitude as a step in the mean power along an axis. A step is a fall by more
    than a factor of 2.5 within 4 % of the side, between half of it and its end.

    >>> rng = np.random.default_rng(0)
    >>> padded = np.zeros((64, 64), complex)
    >>> padded[10:54] = np.fft.fftshift(np.fft.fft2(rng.random((44, 64)) + 3))
    >>> image = np.abs(np.fft.ifft2(np.fft.ifftshift(padded)))
    >>> share = kept_share(image[None].astype(np.float32))
    >>> abs(share[0] - 44 / 64) < 0.05, share[1]
    (True, 1.0)
    """
    power = np.abs(np.fft.fftshift(np.fft.fft2(planes), axes=(-2, -1))) ** 2
    shares = []
    for axis in (1, 2):
        profile = power.mean(axis=(0, 3 - axis))
        middle = len(profile) // 2
        half = profile[middle + 1 : 2 * middle] + profile[1:middle][::-1]
        width = max(2, len(half) // 25)
        logs = np.log10(np.maximum(half, power.max() * 1e-12))
        smooth = np.convolve(logs, np.ones(width) / width, mode="valid")
        drops = smooth[:-width] - smooth[width:]
        radius = np.arange(len(drops)) + width
        allowed = (radius > 0.5 * len(half)) & (radius < 0.96 * len(half))
        best = int(np.argmax(np.where(allowed, drops, -np.inf)))
        shares.append(float(radius[best] / len(half)) if drops[best] > 0.4 else 1.0)
    return shares[0], shares[1]


def _trim(volume: NDArray[np.float32], share: tuple[float, float]) -> NDArray[np.float32]:
    """Crop k-space to its acquired share, and the image to sides that factor well."""
    sides = [int(n * s) // FACTOR * FACTOR for n, s in zip(volume.shape[2:], share, strict=True)]
    for axis, (side, part) in enumerate(zip(sides, share, strict=True), start=2):
        if part < 1:
            spectrum = np.fft.fftshift(np.fft.fft(volume, axis=axis), axes=axis)
            start = volume.shape[axis] // 2 - side // 2
            spectrum = np.fft.ifftshift(np.take(spectrum, range(start, start + side), axis), axes=axis)
            volume = np.abs(np.fft.ifft(spectrum, axis=axis)).astype(np.float32)
        else:
            start = (volume.shape[axis] - side) // 2
            volume = np.take(volume, range(start, start + side), axis)
    return volume
