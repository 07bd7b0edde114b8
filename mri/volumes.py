"""Volumes as NIfTI files, in millimetres and the right way up."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.masks.spec import Kind
from data.scans.scan import Scan
from lab.errors import UserError
from lab.files import atomic_path
from lab.progress import Progress
from mri.predictor import target
from mri.sampling import evaluation_masks
from mri.scores import Result


def export(results: Sequence[Result], scans: Sequence[Scan], kind: Kind, folder: Path) -> list[Path]:
    """The target and the reconstruction by every result of every scan: magnitudes, one frame per echo."""
    paths = []
    with Progress(len(scans) * (len(results) + 1), "exporting", unit="volume") as progress:
        for scan in scans:
            echoes = range(scan.num_echoes)
            whole = [np.abs(target(scan, echo)) for echo in echoes]
            paths.append(write_nifti(folder / f"{scan.scan_id}-target.nii.gz", np.stack(whole, -1), scan))
            progress.advance()
            for result in results:
                mask = evaluation_masks([scan], result.acc, kind)[scan.scan_id]
                predictor = result.predictor(scan.matrix_shape[1:])
                images = [np.abs(predictor.reconstruct(scan, echo, mask)) for echo in echoes]
                words = [scan.scan_id, *result.label.replace(",", "").split(), f"acc{result.acc:g}"]
                words += [f"n{result.num_train}"] if result.num_train else []
                name = f"{'-'.join(words)}.nii.gz"
                paths.append(write_nifti(folder / name, np.stack(images, -1), scan))
                progress.advance()
    return paths


def check_name(path: str | Path) -> Path:
    """A path that a NIfTI file can have."""
    if not str(path).endswith((".nii", ".nii.gz")):
        raise UserError(f"--out takes a name that ends in .nii or .nii.gz, not {path}.")
    return Path(path)


def write_nifti(path: str | Path, volumes: NDArray[np.float32], scan: Scan) -> Path:
    """Write magnitudes (slices, ky, kz) or (slices, ky, kz, echoes) with the scan's spacing and orientation."""
    try:
        import nibabel
    except ImportError as error:
        raise UserError("NIfTI files need nibabel; run: pip install 'monarch-science[nifti]'.") from error
    path = check_name(path)
    image = nibabel.Nifti1Image(np.asarray(volumes, np.float32), affine(scan))
    image.header.set_xyzt_units("mm")
    suffix = ".nii.gz" if path.name.endswith(".gz") else ".nii"
    # The writer chooses compression by the whole ending, of which a temporary name keeps the last part only.
    with atomic_path(path) as temporary:
        draft = temporary.with_name(f"{temporary.name}{suffix}")
        try:
            nibabel.save(image, draft)
            draft.replace(temporary)
        finally:
            draft.unlink(missing_ok=True)
    return path


def affine(scan: Scan) -> NDArray[np.float64]:
    """Voxel indices to millimetres towards right, front and head; the origin is in the middle of the volume."""
    matrix = np.eye(4)
    matrix[:3, :3] = 0
    towards = {"R": (0, 1), "L": (0, -1), "A": (1, 1), "P": (1, -1), "S": (2, 1), "I": (2, -1)}
    for axis, name in enumerate(scan.orientation):
        world, sign = towards[name[1]]  # "SI" runs from head to foot
        matrix[world, axis] = sign * scan.voxel_spacing[axis]
    middle = np.array([(n - 1) / 2 for n in scan.matrix_shape])
    matrix[:3, 3] = -matrix[:3, :3] @ middle
    return matrix
