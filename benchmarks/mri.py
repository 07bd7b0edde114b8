"""What mSENSE costs beside SENSE and mcs beside l1-wavelet, what training costs, and memory.

    python -m benchmarks.mri [--quick] [--busy]

Slices of SKM-TEA's size, 512 x 160 from 8 coils, on the CPU: the time of a reconstruction by mSENSE beside SENSE with
torch.fft, by mcs beside sigpy's l1-wavelet with as many iterations as ours has, and of mSENSE's training step beside
its own forward pass (the command fails where a ratio is above its limit). Without --quick also the memory of SSIM on a
512 x 512 x 160 volume and, for mSENSE and mcs, time and memory of training on one full-size scan and reconstructing it.
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
from lab.memory import keep_freed
from mri.losses import penalty
from mri.models.l1_wavelet import L1Wavelet
from mri.models.mcs import MonarchCS
from mri.models.msense import MSense
from mri.models.sense import Sense
from mri.ssim import ssim

PLANE, COILS, SHAPE = (512, 160), 8, (512, 512, 160)
LIMITS = {
    "mSENSE / SENSE": 6.0,
    "training step / forward": 3.0,
    "mcs --grid stored / l1-wavelet by sigpy": 0.2,
}


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
        "mSENSE / SENSE": times["mSENSE, one slice"] / times["SENSE, one slice"],
        "training step / forward": times["mSENSE training step, 4 slices"]
        / times["mSENSE forward, 4 slices"],
    }


def compressed_sensing_speed(rounds: int) -> dict[str, float]:
    """One slice by mcs, by our l1-wavelet and by sigpy's, sampled at acceleration 4."""
    from sigpy.mri.app import L1WaveletRecon

    kspace, maps, mask, echo = inputs(1)
    mask = (kspace != 0).any(1) & (torch.rand(mask.shape) < 0.25)
    one = kspace * mask[:, None], maps, mask, echo
    arrays = [each[0].numpy() for each in one[:3]]
    mcs, padded, wavelet = MonarchCS(PLANE), MonarchCS(PLANE, grid="stored"), L1Wavelet(PLANE)

    def by_sigpy() -> None:
        L1WaveletRecon(
            *arrays[:2], lamda=0.01, weights=arrays[2], max_iter=wavelet.iterations, show_pbar=False
        ).run()

    with torch.no_grad():
        runs = {
            "mcs, one slice": lambda: mcs(*one),
            "mcs --grid stored, one slice": lambda: padded(*one),
            "l1-wavelet, one slice": lambda: wavelet(*one),
            "l1-wavelet by sigpy, one slice": by_sigpy,
        }
        times = quickest(runs, seconds=0, rounds=rounds)
    for name, value in times.items():
        print(f"{name:34} {1000 * value:8.1f} ms")
    theirs = times["l1-wavelet by sigpy, one slice"]
    return {"mcs --grid stored / l1-wavelet by sigpy": times["mcs --grid stored, one slice"] / theirs}


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


def full_size(threads: int) -> None:
    """Training on a scan of full size, most of it zero, and reconstructing it: time and highest memory."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for split, scan_id in (("train", "MTR_001"), ("val", "MTR_002")):
            record = ScanRecord(1, f"{scan_id}.h5", scan_id, 1, (0.3125, 0.3125, 0.8), SHAPE)
            write_annotations(root, split, [record], "Noise of SKM-TEA's shape")
            with create_scan(scan_path(root, record.file_name), SHAPE, COILS, compress=True) as file:
                for part in ("kspace", "maps", "target"):
                    shape = file[part].shape[1:]
                    zeros = np.zeros(shape, np.complex64)  # a number would be written a few voxels at a time
                    for x in range(SHAPE[0]):  # what is not written would be read as NaN
                        noise = rng.standard_normal((*shape, 2), np.float32) if x % 64 == 8 else None
                        file[part][x] = zeros if noise is None else noise.view(np.complex64)[..., 0]
        scan = str(scan_path(root, "MTR_001.h5"))
        os.environ |= {"MONARCH_RUNS": str(root / "runs"), "MONARCH_DATA": str(root / "datasets")}
        short = (
            "--preset paper --recipe tuned --num-train 1 --val-slices 16 --epochs 1 --masks 24 --mask random"
        )
        for model, amount in (("msense", "--slices 32"), ("mcs", "--samples 16 --epoch-steps 8")):
            told = f"--data {root} --model {model} --name {model} --threads {threads} {short} {amount}"
            _report(f"training {model}", "mri.train", told.split())
            weights = str(root / f"runs/mri/{model}/weights.safetensors")
            told = f"--weights {weights} --input {scan} --out {root}/out.npy --acc 4 --threads {threads}"
            _report(f"reconstructing both echoes by {model}", "mri.reconstruct", told.split())


def _report(what: str, module: str, words: list[str]) -> None:
    """Run a command and say how long it took and how much memory it had."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", module, *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"python -m {module} failed.")
    print(
        f"{what}, {SHAPE}, {COILS} coils: {time.perf_counter() - begin:.0f} s, processor time "
        f"{used.ru_utime + used.ru_stime:.0f} s, peak memory {used.ru_maxrss / 2**20:.1f} GB"
    )


def main() -> int:
    chosen = options(__doc__, quick="speed only, few rounds", threads=torch.get_num_threads())
    print(f"{chosen.threads} threads")
    keep_freed()  # as the commands do
    ratios = speed(7 if chosen.quick else 25) | compressed_sensing_speed(3 if chosen.quick else 7)
    for name, ratio in ratios.items():
        print(f"{name:34} {ratio:8.2f} x (limit {LIMITS[name]:g})")
    if not chosen.quick:
        ssim_memory()
        full_size(chosen.threads)
    return 0 if all(ratio <= LIMITS[name] for name, ratio in ratios.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
