"""Volumes as a series of DICOM files, with the geometry of the scan."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.scans.scan import Scan
from lab.errors import UserError
from lab.files import atomic_path

LARGEST = 4095
"""Of the whole numbers that magnitudes become; every viewer reads 12 bits."""
MR_IMAGE = "1.2.840.10008.5.1.4.1.1.4"
TO_LEFT_BACK_HEAD = np.array([-1.0, -1.0, 1.0])
"""DICOM's coordinates against those of the affine."""


def affine_from(scan: Scan, first: int) -> NDArray[np.float64]:
    """The affine of a volume that begins at slice `first` of a scan."""
    matrix = scan.affine.copy()
    matrix[:3, 3] += first * matrix[:3, 0]
    return matrix


def check_series(folder: Path, part: str | None) -> None:
    """Refuse a series of complex numbers, one among other files, or one that no package writes."""
    try:
        import pydicom  # noqa: F401
    except ImportError as error:
        raise UserError("DICOM files need pydicom; run: pip install 'monarch-science[dicom]'.") from error
    if part == "complex":
        raise UserError(
            "DICOM files hold no complex numbers; ask for --part magnitude or phase, or another format."
        )
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty, and series are not mixed; name another folder with --out.")


def write_series(
    folder: Path, volumes: NDArray[Any], scan: Scan, part: str, *, first: int = 0, what: str = ""
) -> Path:
    """Write (slices, ky, kz, echoes) as a new series: one file per slice and echo, numbers 12 bit with a rescale slope.

    Rows of an image run along ky, columns along kz. Values are rescaled linearly over the whole series, so that slices
    and echoes can be compared.
    """
    check_series(folder, "complex" if np.iscomplexobj(volumes) else part)
    import pydicom.uid

    matrix = affine_from(scan, first) * np.append(TO_LEFT_BACK_HEAD, 1)[:, None]
    low, high = float(np.nanmin(volumes)), float(np.nanmax(volumes))
    low = min(low, 0.0)
    slope = (high - low) / LARGEST or 1.0
    stored = np.nan_to_num((volumes - low) / slope).round().astype(np.uint16)
    series = _series(scan, part, what, matrix, low, slope)
    series.SeriesInstanceUID, series.StudyInstanceUID = pydicom.uid.generate_uid(), pydicom.uid.generate_uid()
    series.FrameOfReferenceUID = pydicom.uid.generate_uid()
    slices, _, _, echoes = stored.shape
    for echo in range(echoes):
        for index in range(slices):
            number = echo * slices + index + 1
            with atomic_path(folder / f"image{number:05}.dcm") as temporary:
                _write(temporary, series, stored[index, :, :, echo], matrix, index, echo, number, scan)
    return folder


def _series(scan: Scan, part: str, what: str, matrix: NDArray[np.float64], low: float, slope: float) -> Any:
    """What all files of the series say."""
    from pydicom.dataset import Dataset

    down, across = matrix[:3, 1], matrix[:3, 2]
    lengths = [float(np.linalg.norm(matrix[:3, axis])) for axis in range(3)]
    series, now = Dataset(), datetime.datetime.now()
    series.SOPClassUID = MR_IMAGE
    series.Modality, series.Manufacturer = "MR", "monarch-science"
    series.PatientName, series.PatientID = scan.scan_id, scan.scan_id
    series.PatientBirthDate = series.PatientSex = series.ReferringPhysicianName = series.AccessionNumber = ""
    series.StudyID, series.SeriesNumber = "1", 1
    series.StudyDate = series.SeriesDate = series.ContentDate = now.strftime("%Y%m%d")
    series.StudyTime = series.SeriesTime = series.ContentTime = now.strftime("%H%M%S")
    series.SeriesDescription = f"{what} {part}".strip()[:64]
    series.ImageType = ["DERIVED", "PRIMARY", "OTHER", "P" if part == "phase" else "M"]
    series.ScanningSequence, series.SequenceVariant, series.ScanOptions = "RM", "NONE", ""
    series.MRAcquisitionType, series.EchoTrainLength = "3D" if scan.three_dimensional else "2D", 1
    # A row runs along columns of the array, so the first direction is that of kz.
    series.ImageOrientationPatient = [_decimal(v) for v in (*across / lengths[2], *down / lengths[1])]
    series.PixelSpacing = [_decimal(lengths[1]), _decimal(lengths[2])]
    series.SliceThickness = series.SpacingBetweenSlices = _decimal(lengths[0])
    series.SamplesPerPixel, series.PhotometricInterpretation = 1, "MONOCHROME2"
    series.BitsAllocated, series.BitsStored, series.HighBit, series.PixelRepresentation = 16, 12, 11, 0
    series.RescaleIntercept, series.RescaleSlope, series.RescaleType = _decimal(low), _decimal(slope), "US"
    if scan.timing is not None:
        series.RepetitionTime = _decimal(scan.timing.repetition_ms)
        series.FlipAngle = _decimal(scan.timing.flip_degrees)
    return series


def _write(
    path: Path,
    series: Any,
    pixels: NDArray[np.uint16],
    matrix: NDArray[np.float64],
    index: int,
    echo: int,
    number: int,
    scan: Scan,
) -> None:
    import pydicom
    from pydicom.dataset import FileDataset, FileMetaDataset

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = pydicom.uid.UID(MR_IMAGE)
    meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    file = FileDataset(str(path), dict(series), file_meta=meta, preamble=b"\0" * 128)
    file.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    file.InstanceNumber, file.EchoNumbers, file.AcquisitionNumber = number, echo + 1, 1
    time = scan.echo_time(echo)
    file.EchoTime = None if time is None else _decimal(time)
    file.ImagePositionPatient = [_decimal(value) for value in matrix[:3, 3] + index * matrix[:3, 0]]
    file.Rows, file.Columns = pixels.shape
    file.PixelData = np.ascontiguousarray(pixels, "<u2").tobytes()
    file.save_as(path, enforce_file_format=True)


def _decimal(value: float) -> str:
    """A number as DICOM writes it, in at most 16 characters."""
    return f"{float(value):.9g}"
