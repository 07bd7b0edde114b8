"""Volumes as files: NIfTI and DICOM in millimetres and the right way up, BART and NumPy as numbers."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from data.masks.spec import Kind
from data.scans.own import bart
from data.scans.scan import Scan
from lab.errors import UserError
from lab.files import atomic_path
from lab.progress import Progress
from mri.dicom import affine_from, write_series
from mri.predictor import target
from mri.sampling import evaluation_masks
from mri.scores import Result

Part = Literal["magnitude", "phase", "complex"]
ENDINGS = (".nii.gz", ".nii", ".npy", ".cfl")
PARTS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "magnitude": np.abs,
    "phase": np.angle,
    "complex": np.asarray,
}


def export(results: Sequence[Result], scans: Sequence[Scan], kind: Kind, folder: Path) -> list[Path]:
    """The target and the reconstruction by every result of every scan: magnitudes, one frame per echo."""
    paths = []
    volumes = sum(1 + sum(result.knows(scan) for result in results) for scan in scans)
    with Progress(volumes, "exporting", unit="volume") as progress:
        for scan in scans:
            echoes = range(scan.num_echoes)
            whole = [np.abs(target(scan, echo)) for echo in echoes]
            paths.append(write_nifti(folder / f"{scan.scan_id}-target.nii.gz", np.stack(whole, -1), scan))
            progress.advance()
            for result in (each for each in results if each.knows(scan)):
                mask = evaluation_masks([scan], result.acc, kind)[scan.scan_id]
                predictor = result.predictor(scan)
                images = np.abs(predictor.reconstruct(scan, mask))
                path = folder / f"{scan.scan_id}-{_words(result)}.nii.gz"
                paths.append(write_nifti(path, np.moveaxis(images, 0, -1), scan))
                progress.advance()
    return paths


def _words(result: Result) -> str:
    """A row in the name of a file: its label may quote what somebody called their data."""
    words = [*result.label.replace(",", "").split(), f"acc{result.acc:g}"]
    words += [f"n{result.num_train}"] if result.num_train else []
    return re.sub(r'[/\\:*?"<>|]', "-", "-".join(words))


def ending_of(path: str | Path) -> str:
    """Which format a name asks for: .nii, .npy, .cfl, or "" for a folder of DICOM files; others are refused."""
    name = Path(path).name
    for ending in ENDINGS:
        if name.endswith(ending):
            return ending.removesuffix(".gz")
    if Path(path).suffix:
        raise UserError(
            "--out takes a name that ends in .nii or .nii.gz, .cfl or .npy, or a folder for DICOM files, whose name "
            f"has no ending, not {path}."
        )
    return ""


def beside(path: Path, word: str, ending: str | None = None) -> Path:
    """The name with a word more, and with its own ending or another.

    >>> beside(Path("knee.1.nii.gz"), "_t2").name, beside(Path("knee.1.nii.gz"), "_t2", ".png").name
    ('knee.1_t2.nii.gz', 'knee.1_t2.png')
    """
    own = next((each for each in ENDINGS if path.name.endswith(each)), "")
    return path.with_name(f"{path.name.removesuffix(own)}{word}{own if ending is None else ending}")


def write_volume(
    path: Path, images: NDArray[Any], scan: Scan, part: Part | None = None, *, first: int = 0, what: str = ""
) -> Path:
    """Write images (slices, ky, kz, echoes), complex or real, in the format that the path asks for.

    `part` is what of complex images is written (None: complex for BART, magnitude otherwise), `first` the first of
    their slices in the scan, `what` says in a few words what they are.
    """
    ending = ending_of(path)
    chosen = part or ("complex" if ending == ".cfl" else "magnitude")
    values = PARTS[chosen](images) if np.iscomplexobj(images) else images
    if ending == ".cfl":
        slices, ky, kz, echoes = values.shape
        # BART has echoes along dimension 5, behind coils and maps, and the slices of 2-D scans along 13.
        if scan.three_dimensional:
            return bart.write(path, values, (slices, ky, kz, 1, 1, echoes))
        return bart.write(path, np.moveaxis(values, 0, -1), (ky, kz, 1, 1, 1, echoes, *[1] * 7, slices))
    if ending == ".npy":
        with atomic_path(path) as temporary:
            np.save(temporary, values)
        return path
    if ending == ".nii":
        return write_nifti(path, values, scan, first=first)
    return write_series(path, values, scan, chosen, first=first, what=what)


def need_nibabel() -> Any:
    """The package that writes NIfTI files; without it a sentence."""
    try:
        import nibabel
    except ImportError as error:
        raise UserError("NIfTI files need nibabel; run: pip install 'monarch-science[nifti]'.") from error
    return nibabel


def write_nifti(path: str | Path, volumes: NDArray[Any], scan: Scan, *, first: int = 0) -> Path:
    """Write volumes (slices, ky, kz) or (slices, ky, kz, echoes) with the scan's spacing and orientation."""
    nibabel, path = need_nibabel(), Path(path)
    kind = np.complex64 if np.iscomplexobj(volumes) else np.float32
    image = nibabel.Nifti1Image(np.asarray(volumes, kind), affine_from(scan, first))
    image.header.set_xyzt_units("mm")
    with atomic_path(path) as temporary:
        nibabel.save(image, temporary)
    return path
