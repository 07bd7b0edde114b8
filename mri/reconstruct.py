"""`python -m mri.reconstruct`: one scan through a trained method, to a NIfTI volume."""

from lab.cli import main
from mri.config import ReconstructConfig


def reconstruct(config: ReconstructConfig) -> None:
    """Reconstruct one scan with the weights of a finished run and write the magnitude of every echo."""
    import numpy as np
    import torch

    from data.scans.reader import open_scan
    from lab.checks import existing_file
    from lab.console import say
    from lab.progress import Progress
    from mri.metrics import METRICS, quality
    from mri.predictor import load, target
    from mri.sampling import evaluation_masks
    from mri.uncertainty import PARTS, half_width, kept_factor
    from mri.volumes import check_name, write_nifti

    torch.set_num_threads(config.threads or torch.get_num_threads())
    check_name(config.out)
    weights = existing_file(config, "weights")
    predictor = load(weights)
    scan = open_scan(existing_file(config, "input"))
    acc = float(predictor.header["acc"]) if config.acc is None else config.acc
    mask = None if acc == 1 else evaluation_masks([scan], acc, predictor.header["mask"])[scan.scan_id]
    if config.uncertainty:
        kept_factor(weights.parent, acc)  # refused before the work, not after it
    images = []
    slices, label = scan.num_slices * scan.num_echoes, f"reconstructing {scan.scan_id}"
    with Progress(slices, label, unit="slice") as progress:
        for echo in range(scan.num_echoes):
            images.append(predictor.reconstruct(scan, echo, mask, advance=progress.advance))
            if mask is not None:
                found = quality(images[-1], target(scan, echo)).items()
                scores = [f"{METRICS[key].title} {METRICS[key].shown(value)}" for key, value in found]
                say(f"echo {echo + 1}, against full sampling: {', '.join(scores)}")
    path = write_nifti(config.out, np.abs(np.stack(images, -1)), scan)
    say(f"wrote {path}: {predictor.header['model']} at acceleration {acc:g}, {scan.num_echoes} echoes")
    if config.uncertainty:
        with Progress(PARTS * slices, "uncertainty", unit="slice") as progress:
            widths, nearest = half_width(predictor, scan, mask, weights.parent, progress.advance)
        path = config.out.with_name(
            f"{config.out.name.removesuffix('.gz').removesuffix('.nii')}-uncertainty.nii.gz"
        )
        say(f"wrote {write_nifti(path, widths, scan)}: half-widths, calibrated at acceleration {nearest:g}")


if __name__ == "__main__":
    main(reconstruct)
