"""What mSENSE costs beside SENSE, what its training step costs beside its forward pass, and memory.

    python -m benchmarks.mri [--quick]

Slices of SKM-TEA's size, 512 x 160 from 8 coils, on the CPU: the time of a reconstruction beside SENSE with torch.fft
and of a training step beside its own forward pass (the command fails where a ratio is above its limit), then the memory
of SSIM on a 512 x 512 x 160 volume and of training on one full-size scan (these two without --quick only).
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.race import options, quickest
from data.scans.skm_tea.layout import ScanRecord, create_scan, scan_path, write_annotations
from mri.losses import penalty
from mri.models.msense import MSense
from mri.models.sense import Sense
from mri.ssim import ssim

PLANE, COILS, SHAPE = (512, 160), 8, (512, 512, 160)
LIMITS = {"reconstruction / SENSE": 6.0, "training step / forward": 3.0}


def inputs(batch: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Random k-space in the acquired part of the grid, as SKM-TEA's is."""
    kspace = torch.zeros(batch, COILS, *PLANE, dtype=torch.complex64)
    kspace[:, :, 48:464, 40:120] = torch.randn(batch, COILS, 416, 80, dtype=torch.complex64)
    maps = torch.randn(batch, COILS, *PLANE, dtype=torch.complex64)
    return kspace, maps, torch.ones(batch, *PLANE, dtype=torch.bool), torch.zeros(batch, dtype=torch.long)


def speed(rounds: int) -> dict[str, float]:
    """Ratios for one slice, and for the training step on a batch of 4."""
    sense, msense = Sense(PLANE).eval(), MSense(PLANE).eval()
    one, four = inputs(1), inputs(4)
    with torch.no_grad():
        runs = {"SENSE, one slice": lambda: sense(*one), "mSENSE, one slice": lambda: msense(*one)}
        times = quickest(runs, seconds=0, rounds=rounds)
    msense.train()
    target = torch.randn(4, *PLANE, dtype=torch.complex64)

    def step() -> None:
        msense.zero_grad()
        penalty("quality", msense(*four), target).backward()

    runs = {"mSENSE forward, 4 slices": lambda: msense(*four), "mSENSE training step, 4 slices": step}
    times |= quickest(runs, seconds=0, rounds=rounds)
    for name, value in times.items():
        print(f"{name:34} {1000 * value:8.1f} ms")
    return {
        "reconstruction / SENSE": times["mSENSE, one slice"] / times["SENSE, one slice"],
        "training step / forward": times["mSENSE training step, 4 slices"]
        / times["mSENSE forward, 4 slices"],
    }


def ssim_memory() -> None:
    """SSIM of a full-size volume: time, and the highest memory this process has used."""
    rng = np.random.default_rng(0)
    target = rng.random(SHAPE, dtype=np.float32)
    image = target + 0.1 * rng.random(SHAPE, dtype=np.float32)
    begin = time.perf_counter()
    value = ssim(image, target, 1.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    took = time.perf_counter() - begin
    print(f"SSIM of {SHAPE}: {value:.4f} in {took:.0f} s, peak memory {peak:.1f} GB")


def training_memory() -> None:
    """Training on a scan of full size, most of it a hole on disk: the highest memory of the process."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for split, scan_id in (("train", "MTR_001"), ("val", "MTR_002")):
            record = ScanRecord(1, f"{scan_id}.h5", scan_id, 1, (0.3125, 0.3125, 0.8), SHAPE)
            write_annotations(root, split, [record], "Noise of SKM-TEA's shape")
            with create_scan(scan_path(root, record.file_name), SHAPE, COILS) as file:
                for x in range(8, SHAPE[0], 64):
                    for part in ("kspace", "maps", "target"):
                        noise = rng.standard_normal((*file[part].shape[1:], 2), np.float32)
                        file[part][x] = noise.view(np.complex64)[..., 0]
        options = (
            "--preset paper --recipe tuned --num-train 1 --slices 32 --val-slices 16 --epochs 1 --masks 24"
        )
        words = [sys.executable, "-m", "mri.train", "--data", str(root), *options.split(), "--mask", "random"]
        environment = {"MONARCH_RUNS": str(root / "runs"), "MONARCH_DATA": str(root / "datasets")}
        subprocess.run(words, check=True, env={**os.environ, **environment})
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"training on {SHAPE} x 2 echoes x {COILS} coils, batches of 24: peak memory {peak:.1f} GB")


def main() -> int:
    quick = options(__doc__, quick="speed only, few rounds").quick
    print(f"{torch.get_num_threads()} threads")
    ratios = speed(7 if quick else 25)
    for name, ratio in ratios.items():
        print(f"{name:34} {ratio:8.2f} x (limit {LIMITS[name]:g})")
    if not quick:
        ssim_memory()
        training_memory()
    return 0 if all(ratio <= LIMITS[name] for name, ratio in ratios.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
