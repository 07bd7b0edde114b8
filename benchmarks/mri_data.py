"""How fast MRI slices are read and Poisson masks are made, at SKM-TEA's full size.

    python -m benchmarks.mri_data [--quick]

Reading: a file of the shape 512 x 512 x 160 x 2 echoes x 8 coils is declared in full and a part of its slices is
filled (nothing else takes space on disk); those are read in random order by two worker processes, once with the
file's pages dropped from memory, once with them there, from chunks of one slice and from one contiguous piece.
Beside it stands the time of mSENSE's training step on such a slice, which reading must not hold up.

Masks: 1000 variable-density Poisson discs on (416, 80) at acceleration 2, from nothing.
"""

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset

from benchmarks.race import options, quickest
from data.masks.pool import MaskPool
from data.masks.spec import MaskSpec
from data.scans.skm_tea.layout import create_scan, dataset_shapes
from data.scans.skm_tea.scan import SkmTeaScan
from data.scans.slices import Slice, SliceDataset, collate
from mri.models.msense import MSense

SHAPE, COILS = (512, 512, 160), 8


def write_scan(path: Path, num_filled: int, chunked: bool) -> None:
    """A full-size scan of noise with the first slices filled."""
    rng = np.random.default_rng(0)
    if chunked:
        with create_scan(path, SHAPE, COILS) as file:
            fill(file, num_filled, rng)
        return
    with h5py.File(path, "w") as file:
        for name, shape in dataset_shapes(SHAPE, COILS).items():
            # leaves a hole where nothing is written
            file.create_dataset(name, shape, "complex64", fill_time="never")
        fill(file, num_filled, rng)


def fill(file: h5py.File, num_filled: int, rng: np.random.Generator) -> None:
    for name in ("kspace", "maps", "target"):
        for x in range(num_filled):
            noise = rng.standard_normal((*file[name].shape[1:], 2), np.float32)
            file[name][x] = noise.view(np.complex64)[..., 0]


def drop_from_memory(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_all(slices: Dataset[Slice], num_workers: int) -> float:
    """Seconds per slice, from the first batch that arrives to the last."""
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(
        slices, batch_size=4, shuffle=True, num_workers=num_workers, collate_fn=collate, generator=generator
    )
    batches: Iterator[Slice] = iter(loader)
    next(batches)
    begin, count = time.perf_counter(), 0
    for batch in batches:
        count += len(batch.scan_id)
    return (time.perf_counter() - begin) / count


def msense_step() -> float:
    """Seconds per slice of mSENSE's training step, batches of 4 slices."""
    plane = (SHAPE[1], SHAPE[2])
    model = MSense(plane)
    optimiser = torch.optim.Adam(model.parameters(), 1e-4)
    kspace, maps = (torch.randn(4, COILS, *plane, dtype=torch.complex64) for _ in range(2))
    target = torch.randn(4, *plane, dtype=torch.complex64)
    mask, echo = torch.ones(4, *plane) > 0, torch.zeros(4)

    def step() -> None:
        optimiser.zero_grad()
        (model(kspace, maps, mask, echo) - target).abs().square().mean().backward()
        optimiser.step()

    return quickest({"step": step}, seconds=0)["step"] / 4


def gigabytes(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 2**20


def processor_seconds() -> float:
    """What finished worker processes have used, which other programs on the machine hardly change."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def bench_reading(folder: Path, num_filled: int) -> None:
    print(f"reading slices of {SHAPE} x 2 echoes x {COILS} coils in random order, 2 workers")
    for chunked in (True, False):
        path = folder / "MTR_001.h5"
        write_scan(path, num_filled, chunked)
        scan = SkmTeaScan(path)
        scan.__dict__["scale"] = 1.0  # the statistics of a file that is mostly empty mean nothing
        slices = Subset(SliceDataset([scan]), range(2 * num_filled))
        for cached in (False, True):
            if not cached:
                drop_from_memory(path)
            seconds = read_all(slices, num_workers=2)
            layout = "a chunk a slice " if chunked else "in one piece    "
            where = "in page cache" if cached else "from disk    "
            print(f"  {layout} {where}  {1e3 * seconds:7.1f} ms/slice  {1 / seconds:6.1f} slices/s")
        path.unlink()
    own, worker = gigabytes(resource.RUSAGE_SELF), gigabytes(resource.RUSAGE_CHILDREN)
    print(f"  resident: {own:.2f} GB here + 2 x {worker:.2f} GB in workers = {own + 2 * worker:.2f} GB")
    step = msense_step()
    threads = torch.get_num_threads()
    print(f"  mSENSE training step, {threads} threads: {1e3 * step:.1f} ms/slice")


def bench_masks(folder: Path, count: int) -> None:
    pool = MaskPool(MaskSpec("poisson", (416, 80), 2), folder)
    begin, processor = time.perf_counter(), processor_seconds()
    pool.training(count)
    seconds, processor = time.perf_counter() - begin, processor_seconds() - processor
    accelerations = pool.accelerations(count)
    print(f"{count} Poisson masks (416, 80) at acceleration 2: {seconds:.0f} s")
    print(f"  {processor / count:.3f} s of processor time each, the search for the slope included")
    print(f"  accelerations {min(accelerations):.3f} to {max(accelerations):.3f}")


def main() -> None:
    quick = options(__doc__, quick="16 slices and 32 masks instead of 48 and 1000").quick
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MONARCH_DATA"] = folder
        bench_reading(Path(folder), num_filled=16 if quick else 48)
        bench_masks(Path(folder), count=32 if quick else 1000)


if __name__ == "__main__":
    main()
