"""What is computed once from a file of one's own and kept on disk, so that slices can be read one by one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from data.scans.mapped import Mapped, write_array
from data.scans.sense import ifftc
from lab.errors import UserError
from lab.files import fingerprint, make_folder
from lab.memory import require, size
from lab.paths import datasets_dir, plain_name
from lab.progress import Progress

Complex = NDArray[np.complex64]
Fill = Callable[[Complex], None]


def file_key(*paths: Path) -> str:
    """Names what is kept for some files: differs between files of one name, and when one of them changes."""
    parts = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return fingerprint(parts)


def kept(source: Path, key: str, name: str, shape: tuple[int, ...], memory: float, fill: Fill) -> Mapped:
    """The array called `name` of a file, complex64: filled once, then mapped.

    Before anything is read, the memory that filling it needs is said, and too little memory or disk refused.
    """
    path = (
        datasets_dir() / "scans" / f"{plain_name(source.stem, f'the name of {source}')}-{key}" / f"{name}.npy"
    )
    if not path.exists():
        needed = 8 * int(np.prod(shape, dtype=object))
        make_folder(path.parent)
        free = shutil.disk_usage(path.parent).free
        if needed > free:
            raise UserError(
                f"{source} needs {size(needed)} on disk to be read slice by slice, but {path.parent} has {size(free)}; "
                "free some, or let MONARCH_DATA name a folder on a larger disk."
            )
        require(memory, f"reading {source.name}", "close other programs, or cut the scan into parts")
        write_array(path, shape, fill)
    return Mapped(path)


def readout_transformed(source: Path, key: str, kspace: Mapped) -> Mapped:
    """K-space (kx, echo, coil, ky, kz) of a 3-D scan with its first axis in image space, one coil at a time."""
    _, echoes, coils, *_ = shape = kspace.shape

    def fill(array: Complex) -> None:
        with Progress(echoes * coils, f"transforming {source.name}", unit="coil") as progress:
            for echo in range(echoes):
                for coil in range(coils):
                    one = torch.from_numpy(np.array(kspace[:, echo, coil], np.complex64))
                    array[:, echo, coil] = ifftc(one, 0).numpy()
                    progress.advance()

    volume = 8 * np.prod(shape, dtype=float) / (echoes * coils)
    return kept(source, key, "hybrid", shape, 4 * volume, fill)
