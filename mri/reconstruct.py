"""`python -m mri.reconstruct`: one scan through a trained or a classical method, to a volume."""

from pathlib import Path
from typing import TYPE_CHECKING

from lab.cli import main
from lab.errors import UserError
from lab.memory import keep_freed
from mri.config import ReconstructConfig

if TYPE_CHECKING:
    from torch import Tensor

    from data.scans.scan import Scan
    from mri.metrics import Complex
    from mri.predictor import Predictor


def reconstruct(config: ReconstructConfig) -> None:
    """Reconstruct one scan, of whatever format, with the weights of a run or a method that needs no training."""
    import numpy as np
    import torch

    from data.scans.reader import open_scan
    from lab.console import say
    from mri.t2 import timing_of
    from mri.volumes import write_volume

    keep_freed()
    torch.set_num_threads(config.threads or torch.get_num_threads())
    _check(config)
    scan = open_scan(_input(config))
    predictor = _predictor(config, scan)
    echoes = f"{scan.num_echoes} echo{'es' if scan.num_echoes > 1 else ''}"
    say(f"{scan.scan_id}: {scan.origin}, {_by(scan.matrix_shape)}, {scan.num_coils} coils, {echoes}")
    mask, sampled = _sampling(config, scan, predictor)
    say(f"{sampled}; coil maps {scan.maps_are}")
    if config.t2:
        timing_of(scan, config)
    if config.uncertainty:
        _check_uncertainty(config, scan, predictor)
    slices = _slices(config, scan)
    _require_memory(scan, len(slices), config.uncertainty)
    images = _volumes(predictor, scan, mask, slices)
    name, first = predictor.header["model"], slices[0]
    path = write_volume(config.out, np.moveaxis(images, 0, -1), scan, config.part, first=first, what=name)
    say(f"wrote {path}: {name}, {sampled}")
    if config.uncertainty:
        _write_uncertainty(config, scan, predictor, mask)
    if config.t2:
        _write_t2(config, scan, images, first)


def _check(config: ReconstructConfig) -> None:
    from lab.checks import existing_file
    from mri.dicom import check_series
    from mri.volumes import beside, ending_of, need_nibabel

    if ending_of(config.out) == ".nii" or config.uncertainty:
        need_nibabel()
    if not ending_of(config.out):
        check_series(config.out, config.part)
        if config.t2:
            check_series(beside(config.out, "_t2"), None)
    if config.weights is not None:
        existing_file(config, "weights")
    if (config.weights is None) == (config.model is None):
        raise UserError(
            "either --weights of a finished run or --model names the method; --model cg-sense needs no training."
        )
    if config.strength is not None and config.model is None:
        raise UserError("--strength goes with --model; weights have theirs.")
    if config.mask is not None and (config.model is None or config.acc in (None, 1)):
        raise UserError(
            "--mask goes with --model and --acc: weights know their own mask, and without --acc nothing is sampled."
        )


def _input(config: ReconstructConfig) -> Path:
    if config.input is None:
        raise UserError("--input is missing; it names the scan.")
    return config.input


def _predictor(config: ReconstructConfig, scan: "Scan") -> "Predictor":
    from mri.models import MODELS, build
    from mri.predictor import Predictor, load

    if config.weights is not None:
        return load(config.weights)
    name = str(config.model)
    method = build(name, scan.matrix_shape[1:])
    if MODELS[name].learned or method.needs_density:
        ready = [
            each for each in MODELS if not MODELS[each].learned and not MODELS[each].load().needs_density
        ]
        raise UserError(
            f"{name} learns from scans: train it and give its --weights; {', '.join(ready)} need no training."
        )
    if config.strength is not None:
        method.set_strength(config.strength)
    return Predictor(method, {"model": name, "acc": 1.0, "mask": config.mask or "poisson"})


def _sampling(config: ReconstructConfig, scan: "Scan", predictor: "Predictor") -> tuple["Tensor | None", str]:
    """The mask to simulate (None: the data are taken as they are), and what is reconstructed, in words."""
    from mri.sampling import evaluation_masks

    if scan.undersampled:
        if config.acc not in (None, 1):
            raise UserError(f"{scan.path} is {scan.sampling} already; leave out --acc.")
        return None, str(scan.sampling)
    acc = float(predictor.header["acc"]) if config.acc is None else config.acc
    if acc == 1:
        return None, f"{scan.sampling}, taken as it is"
    mask = evaluation_masks([scan], acc, predictor.header["mask"])[scan.scan_id]
    return mask, f"acceleration {acc:g} simulated"


def _slices(config: ReconstructConfig, scan: "Scan") -> range:
    if config.slices is None:
        return range(scan.num_slices)
    first, colon, last = config.slices.partition(":")
    try:
        chosen = range(int(first or 0), int(last) if last else scan.num_slices)
    except ValueError:
        chosen = range(0)
    if not colon or not chosen or chosen[0] < 0 or chosen[-1] >= scan.num_slices:
        raise UserError(
            f"--slices takes FIRST:LAST within 0:{scan.num_slices}, as in 0:{min(scan.num_slices, 16)}, "
            f"not {config.slices}."
        )
    return chosen


def _require_memory(scan: "Scan", slices: int, uncertainty: bool) -> None:
    """Images, twice over while they are written, a portion of slices with all coils some six times, and for the
    uncertainty two sums over its reconstructions."""
    from lab.memory import require
    from mri.predictor import SLICES_AT_ONCE

    points = scan.matrix_shape[1] * scan.matrix_shape[2]
    volumes = (6 if uncertainty else 3) * slices * scan.num_echoes
    needed = 8 * points * (volumes + 6 * SLICES_AT_ONCE * scan.num_coils)
    half = max(1, slices // 2)
    require(needed, f"reconstructing {slices} slices", f"reconstruct in parts, as with --slices 0:{half}")


def _volumes(predictor: "Predictor", scan: "Scan", mask: "Tensor | None", slices: range) -> "Complex":
    """The images (echoes, slices, ky, kz); where undersampling was simulated, their scores are said."""
    import numpy as np

    from lab.console import say
    from lab.progress import Progress
    from mri.metrics import METRICS, quality
    from mri.ssim import SMALLEST

    count = len(slices) * scan.num_echoes
    with Progress(count, f"reconstructing {scan.scan_id}", unit="image") as progress:
        images = predictor.reconstruct(scan, mask, slices, advance=progress.advance)
    if mask is not None and min(images.shape[-2:]) < SMALLEST:
        say(f"slices below {SMALLEST} x {SMALLEST} voxels are not scored")
        return images
    for echo, image in enumerate(images if mask is not None else ()):
        truth = np.stack([scan.read(index, echo)[2].numpy() for index in slices])
        found = quality(image, truth).items()
        scores = [f"{METRICS[key].title} {METRICS[key].shown(value)}" for key, value in found]
        say(f"echo {echo + 1}, against full sampling: {', '.join(scores)}")
    return images


def _check_uncertainty(config: ReconstructConfig, scan: "Scan", predictor: "Predictor") -> None:
    """Refuse before the work, not after it."""
    from mri.uncertainty import kept_factor

    if config.weights is None or config.slices is not None:
        raise UserError(
            "--uncertainty needs --weights that mri.eval calibrated, and whole scans, without --slices."
        )
    acc = float(predictor.header["acc"]) if config.acc is None else config.acc
    kept_factor(config.weights.parent, scan.sampling.acceleration if scan.undersampled else acc)


def _write_uncertainty(
    config: ReconstructConfig, scan: "Scan", predictor: "Predictor", mask: "Tensor | None"
) -> None:
    from lab.console import say
    from lab.progress import Progress
    from mri.uncertainty import PARTS, half_width
    from mri.volumes import beside, write_nifti

    assert config.weights is not None
    with Progress(PARTS * scan.num_slices * scan.num_echoes, "uncertainty", unit="slice") as progress:
        widths, nearest = half_width(predictor, scan, mask, config.weights.parent, progress.advance)
    path = beside(config.out, "-uncertainty", ".nii.gz")
    say(f"wrote {write_nifti(path, widths, scan)}: half-widths, calibrated at acceleration {nearest:g}")


def _write_t2(config: ReconstructConfig, scan: "Scan", images: "Complex", first: int) -> None:
    """The map of T2 in milliseconds beside the volume, 0 where there is none, and a picture of it."""
    import numpy as np

    from lab.console import say
    from mri.t2 import t2_of
    from mri.t2_results import draw_t2
    from mri.volumes import beside, write_volume

    found = t2_of(list(images), scan, config)
    path = write_volume(
        beside(config.out, "_t2"),
        np.nan_to_num(found)[..., None],
        scan,
        first=first,
        what="T2",
    )
    index = int(np.isfinite(found).sum((1, 2)).argmax())
    aspect = scan.voxel_spacing[1] / scan.voxel_spacing[2]
    title, place = f"{scan.scan_id}, slice {first + index}", beside(config.out, "_t2", ".png")
    picture = draw_t2(place, {"T2": found[index]}, np.abs(images[0][index]), title, aspect)
    say(f"wrote {path}: T2 in milliseconds, and {picture}")


def _by(sides: tuple[int, ...]) -> str:
    return " x ".join(map(str, sides))


if __name__ == "__main__":
    main(reconstruct)
