"""Synthetic knees on disk: one file per subject, in SKM-TEA's layout, on all cores, resumable."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from numpy.typing import NDArray

from data.knee.anatomy import LABELS, render
from data.knee.config import (
    MASK_ACCELERATIONS,
    SPLIT_CYCLE,
    GenerateConfig,
    acquired_grid,
    calibration_region,
    check,
    default_noise,
    field_of_view,
)
from data.knee.scanner import MAP_BITS, Protocol, Scanner, Slab, write_scan
from data.knee.subject import Subject
from data.knee.tissue import ECHO_MS, FLIP_DEGREES, REPETITION_MS
from data.masks.pool import MaskPool
from data.masks.spec import MaskSpec
from data.parallel import cpu_count, in_processes, one_thread
from data.scans.scan import Segmentation
from data.scans.skm_tea.layout import SCANS, SPLITS, ScanRecord, scan_path, write_annotations
from lab.errors import UserError
from lab.files import fingerprint, remove_leftovers
from lab.paths import datasets_dir
from lab.progress import Progress

VERSION: Final = 2
"""Version of the knees themselves: raised whenever the same seed would give other numbers."""
ORIGIN: Final = "synthetic knee"
DESCRIPTION: Final = "Synthetic knees in the layout of SKM-TEA's raw-data track; not SKM-TEA"
VOXELS_AT_ONCE: Final = 1_000_000


@dataclass(frozen=True)
class Job:
    """One subject to make."""

    number: int
    seed: int
    path: Path
    protocol: Protocol
    fingerprint: str
    masks: dict[float, NDArray[np.bool_]]


def generate(config: GenerateConfig) -> Path:
    """Make what is missing of a data set and return its folder."""
    shape = check(config)
    grid = acquired_grid(shape)
    noise = default_noise(shape) if config.noise is None else config.noise
    protocol = Protocol(shape, field_of_view(shape), grid, calibration_region(grid), config.coils, noise)
    root = config.out or datasets_dir() / f"knees-{'x'.join(map(str, shape))}"
    identity = fingerprint({"protocol": asdict(protocol), "seed": config.seed, "version": VERSION})
    names, missing = scan_names(root, config.subjects, identity)
    if missing:
        masks = evaluation_masks(grid, missing)
        jobs = [
            Job(number, config.seed, scan_path(root, f"{name}.h5"), protocol, identity, masks[name])
            for number, name in enumerate(names, start=1)
            if name in missing
        ]
        with Progress(len(names), "synthetic knees", unit="subject") as progress:
            progress.skip(len(names) - len(missing))
            for _ in in_processes(make_subject, jobs, config.jobs or cpu_count()):
                progress.advance()
    write_splits(root, names, protocol, DESCRIPTION)
    return root


def ensure(subjects: int, out: Path | None = None, **options: Any) -> Path:
    """The folder of the built-in knees, made if it is not there yet."""
    return generate(GenerateConfig(subjects, out, **options))


def scan_names(root: Path, count: int, identity: str) -> tuple[list[str], list[str]]:
    """The names of so many scans, as SKM-TEA's are, and which of them are missing."""
    names = [f"MTR_{number:03d}" for number in range(1, count + 1)]
    remove_leftovers(root / SCANS)
    return names, [name for name in names if not is_finished(scan_path(root, f"{name}.h5"), identity)]


def evaluation_masks(grid: tuple[int, int], names: list[str]) -> dict[str, dict[float, NDArray[np.bool_]]]:
    """Each scan's own Poisson masks, as `MaskPool.for_scan` gives them."""
    masks: dict[str, dict[float, NDArray[np.bool_]]] = {name: {} for name in names}
    for acceleration in MASK_ACCELERATIONS:
        for name, mask in MaskPool(MaskSpec("poisson", grid, acceleration)).for_scans(names).items():
            masks[name][acceleration] = mask.numpy()
    return masks


def make_subject(job: Job) -> None:
    """Draw one knee, scan it, write the file."""
    subject = Subject(seed=job.seed * 100_003 + job.number)
    scanner = Scanner(job.protocol, seed=subject.seed)
    attributes = {
        "origin": ORIGIN,
        "description": "Simulated anatomy, signal, coils, phase and noise; no patient data.",
        "subject_seed": subject.seed,
        "traits": json.dumps(asdict(subject.traits)),
        "repetition_ms": REPETITION_MS,
        "echo_1_ms": ECHO_MS[0],
        "echo_2_ms": ECHO_MS[1],
        "flip_degrees": FLIP_DEGREES,
        **protocol_attributes(job.protocol),
        "version": VERSION,
        "fingerprint": job.fingerprint,
    }
    with one_thread():
        write_scan(job.path, scanner, _slabs(subject, job.protocol), 2, job.masks, attributes)


def protocol_attributes(protocol: Protocol) -> dict[str, str | int | float]:
    """What a file says about how it was scanned."""
    return {
        "field_of_view_mm": json.dumps(protocol.field_of_view),
        "acquired_grid": json.dumps(protocol.grid),
        "calibration_region": json.dumps(protocol.calibration),
        "coils": protocol.coils,
        "noise": protocol.noise,
        "map_bits": MAP_BITS,
    }


def slab_rows(shape: tuple[int, int, int]) -> Iterator[slice]:
    """Rows of at most about a million voxels."""
    step = max(1, VOXELS_AT_ONCE // (shape[1] * shape[2]))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def _slabs(subject: Subject, protocol: Protocol) -> Iterator[Slab]:
    for rows in slab_rows(protocol.shape):
        yield rows, render(subject, protocol.axes(rows)).echoes


def segmentation(seed: int, shape: tuple[int, int, int]) -> Segmentation:
    """The tissue that fills most of each voxel of a subject, drawn again from its seed."""
    grid = acquired_grid(shape)
    protocol = Protocol(shape, field_of_view(shape), grid, calibration_region(grid), coils=1, noise=0.0)
    slabs = [render(Subject(seed), protocol.axes(rows)).labels for rows in slab_rows(shape)]
    return Segmentation(np.concatenate(slabs), dict(enumerate(LABELS)))


def is_finished(path: Path, identity: str) -> bool:
    """Whether a subject was made before; one made with other options is not overwritten."""
    if not path.exists():
        return False
    try:
        with h5py.File(path) as file:
            found = file.attrs.get("fingerprint")
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); delete it and it is made again.") from error
    if found != identity:
        raise UserError(
            f"{path} was made with other options or by another version; name another folder, or delete this one."
        )
    return True


def write_splits(root: Path, names: list[str], protocol: Protocol, description: str) -> None:
    """Write train, val and test; a subject's split depends on its number alone."""
    chosen: dict[str, list[tuple[int, str]]] = {split: [] for split in SPLITS}
    for number, name in enumerate(names, start=1):
        chosen[SPLIT_CYCLE[(number - 1) % len(SPLIT_CYCLE)]].append((number, name))
    for split, members in chosen.items():
        records = [
            ScanRecord(i, f"{name}.h5", name, number, protocol.voxel_spacing, protocol.shape)
            for i, (number, name) in enumerate(members, start=1)
        ]
        write_annotations(root, split, records, description)
