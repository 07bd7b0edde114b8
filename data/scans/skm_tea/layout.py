"""SKM-TEA's raw-data track on disk: names, axes, types, and the functions that write them.

    <root>/annotations/v1.0.0/{train,val,test}.json
    <root>/files_recon_calib-24/MTR_001.h5
        kspace   complex64 (x, ky, kz, echoes, coils)   hybrid: the readout x is already in image space
        maps     complex64 (x, y, z, coils, 1)          coil sensitivities
        target   complex64 (x, y, z, echoes, 1)         SENSE combination of the full k-space
        masks/poisson_4.0x   bool (acquired ky, acquired kz)   where they exist

The scanner acquired a (416, 80) grid and zero-padded it to (512, 160), so masks are smaller than k-space.
Real scans, synthetic knees and simulated ones share this layout.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.files import atomic_path, write_json

if TYPE_CHECKING:
    import h5py

SPLITS = ("train", "val", "test")
ANNOTATIONS = Path("annotations") / "v1.0.0"
SCANS = Path("files_recon_calib-24")

KSPACE, MAPS, TARGET, MASKS = "kspace", "maps", "target", "masks"
DTYPE = "complex64"
NUM_ECHOES = 2
ORIENTATION = ("SI", "AP", "LR")


@dataclass(frozen=True)
class ScanRecord:
    """One entry of `images` in an annotation file; a scan of the raw-data track and where it came from."""

    id: int
    """Number within the split, from 1."""
    file_name: str
    scan_id: str
    subject_id: int
    voxel_spacing: tuple[float, float, float]
    """Millimetres along (x, y, z), after zero-padding."""
    matrix_shape: tuple[int, int, int]
    """(x, y, z), after zero-padding: (512, 512, 160) for nearly all of SKM-TEA."""
    orientation: tuple[str, str, str] = ORIENTATION
    num_echoes: int = NUM_ECHOES


def annotation_path(root: str | Path, split: str) -> Path:
    """Where the list of a split's scans is."""
    return Path(root) / ANNOTATIONS / f"{split}.json"


def scan_path(root: str | Path, file_name: str) -> Path:
    """Where a scan is, by the `file_name` of its record."""
    return Path(root) / SCANS / file_name


def mask_key(acceleration: float) -> str:
    """The data set that holds the distributed mask of an acceleration.

    >>> mask_key(4)
    'masks/poisson_4.0x'
    """
    return f"{MASKS}/poisson_{acceleration:.1f}x"


def dataset_shapes(
    matrix_shape: Sequence[int], coils: int, echoes: int = NUM_ECHOES
) -> dict[str, tuple[int, ...]]:
    """The shape of each array of a scan.

    >>> dataset_shapes((512, 512, 160), coils=8)["kspace"]
    (512, 512, 160, 2, 8)
    """
    shape = tuple(matrix_shape)
    return {KSPACE: (*shape, echoes, coils), MAPS: (*shape, coils, 1), TARGET: (*shape, echoes, 1)}


def write_annotations(root: str | Path, split: str, scans: Sequence[ScanRecord], description: str) -> None:
    """Write the list of a split's scans; `description` says what the data are (it stands in `info`)."""
    content = {
        "info": {"description": f"{description} - {split}", "version": ANNOTATIONS.name},
        "categories": [],
        "tissues": [],
        "images": [asdict(scan) for scan in scans],
        "annotations": [],
    }
    write_json(annotation_path(root, split), content)


@contextmanager
def create_scan(
    path: str | Path,
    matrix_shape: Sequence[int],
    coils: int,
    attributes: Mapping[str, str | int | float] | None = None,
    *,
    echoes: int = NUM_ECHOES,
    compress: bool = False,
) -> Iterator["h5py.File"]:
    """Open a new scan file with empty `kspace`, `maps` and `target`, to be filled slice by slice.

        with create_scan(path, (64, 96, 48), coils=8, attributes={"origin": "synthetic knee"}) as file:
            file["kspace"][x] = ...       # (ky, kz, echoes, coils)
            file["maps"][x] = ...         # (y, z, coils, 1)
            file["target"][x] = ...       # (y, z, echoes, 1)
            file[mask_key(4)] = mask      # bool, acquired grid

    It appears under its own name only when the block ends without an error. A chunk is one slice of one
    echo, so that reading it in random order reads nothing else; a checksum tells whether it is damaged. `compress`
    shrinks zero-padded k-space to a third, losslessly, for some speed.
    """
    from data.hdf5 import checked_storage, make_group, new_file

    filters = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if compress else {}

    with atomic_path(path) as temporary, new_file(temporary) as file:
        for name, shape in dataset_shapes(matrix_shape, coils, echoes).items():
            chunks = (1, *shape[1:]) if name == MAPS else (1, *shape[1:3], 1, shape[4])
            file.create_dataset(name, shape, **checked_storage(chunks, DTYPE), **filters)
        make_group(file, MASKS)
        for name, value in (attributes or {}).items():
            file.attrs[name] = value
        yield file
