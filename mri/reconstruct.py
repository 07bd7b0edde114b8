"""`python -m mri.reconstruct`: one scan through a trained method, to a NIfTI volume."""

import sys

from lab.cli import run
from mri.config import ReconstructConfig


def reconstruct(config: ReconstructConfig) -> None:
    """Reconstruct one scan with the weights of a finished run and write the magnitude of every echo."""
    import numpy as np
    import torch

    from data.scans.reader import open_scan
    from lab.cli import existing_file
    from lab.console import say
    from lab.progress import Progress
    from mri import volume
    from mri.metrics import quality
    from mri.models.registry import load
    from mri.nifti import check_name, write_nifti
    from mri.sampling import evaluation_masks

    torch.set_num_threads(config.threads or torch.get_num_threads())
    check_name(config.out)
    method, header = load(existing_file(config.weights, "--weights"))
    scan = open_scan(existing_file(config.input, "--input"))
    acc = float(header["acc"]) if config.acc is None else config.acc
    mask = None if acc == 1 else evaluation_masks([scan], acc, header["mask"])[scan.scan_id]
    magnitudes = []
    with Progress(
        scan.num_slices * scan.num_echoes, f"reconstructing {scan.scan_id}", unit="slice"
    ) as progress:
        for echo in range(scan.num_echoes):
            image = volume.reconstruct(method, scan, echo, mask, progress.advance)
            magnitudes.append(np.abs(image))
            if mask is not None:
                score = quality(image, volume.target(scan, echo))
                say(f"echo {echo + 1}: pSNR {score.psnr:.2f} dB, SSIM {score.ssim:.4f} against full sampling")
    path = write_nifti(config.out, np.stack(magnitudes, -1), scan)
    say(f"wrote {path}: {header['model']} at acceleration {acc:g}, {scan.num_echoes} echoes")


if __name__ == "__main__":
    sys.exit(run("python -m mri.reconstruct", {"": reconstruct}))
