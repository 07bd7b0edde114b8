"""From scores to pictures: reconstructions with their errors, and learned transforms."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.masks.pool import density
from data.masks.spec import Kind
from data.scans.scan import Scan
from data.scans.sense import fft2c, ifft2c
from lab import plot
from mri.metrics import METRICS, Complex
from mri.models import BASELINE, MODELS
from mri.models.parts.method import LearnedTransform
from mri.predictor import target
from mri.sampling import evaluation_masks, training_masks
from mri.scores import Result

ERROR_GAIN = 5


def figures(results: Sequence[Result], scan: Scan, kind: Kind, folder: Path, data: str) -> list[Path]:
    """Reconstructions of one scan at the lowest acceleration by every method, and what the methods learned.

    Of each method, reconstructions are by the run with the fewest training scans, as in the paper; a learned transform
    is best seen where the most was learned from.
    """
    acc = min(result.acc for result in results)
    results = [result for result in results if result.knows(scan)]
    here = {name: [one for one in results if one.acc == acc and one.model == name] for name in MODELS}
    fewest = [min(found, key=lambda one: (one.variant, one.num_train)) for found in here.values() if found]
    most = [min(found, key=lambda one: (one.variant, -one.num_train)) for found in here.values() if found]
    paths = _reconstructions(fewest, scan, kind, folder, data)
    for result in most:
        name = MODELS[result.model].shown
        method = result.predictor(scan).method.cpu()
        learned = method.learned_transform
        if learned is not None and method.plane == tuple(scan.matrix_shape[1:]):
            sampled = density(
                training_masks([scan], [acc], kind, result.runs[-1].config["masks"])[scan.scan_id]
            )
            title = f"{name}, acceleration {acc:g}, N = {result.num_train} ({data})"
            path = folder / f"learned_{result.model}.png"
            paths.append(draw_learned(path, name, learned, sampled, title))
    return paths


def _reconstructions(chosen: Sequence[Result], scan: Scan, kind: Kind, folder: Path, data: str) -> list[Path]:
    acc = chosen[0].acc
    mask = evaluation_masks([scan], acc, kind)[scan.scan_id]
    metric, aspect = next(iter(METRICS)), scan.voxel_spacing[1] / scan.voxel_spacing[2]
    wholes = [target(scan, echo) for echo in range(scan.num_echoes)]
    indices = [_liveliest(whole) for whole in wholes]
    volumes = [result.predictor(scan).reconstruct(scan, mask, indices) for result in chosen]
    paths = []
    for echo, (whole, index) in enumerate(zip(wholes, indices, strict=True)):
        images = {}
        for result, made in zip(chosen, volumes, strict=True):
            trained = f" (N = {result.num_train})" if result.num_train else ""
            score = result.values(metric, echo + 1)[scan.scan_id]
            name = f"{MODELS[result.model].shown}{trained}\n{METRICS[metric].shown(score)}"
            images[name] = made[echo, echo]  # the slice that was chosen for this echo
        title = f"{scan.scan_id}, echo {echo + 1}, acceleration {acc:g} ({data})"
        path = folder / f"reconstruction_echo{echo + 1}.png"
        paths.append(draw_reconstructions(path, whole[index], images, title, aspect))
    return paths


def draw_reconstructions(
    path: Path, truth: Complex, images: Mapping[str, Complex], title: str, aspect: float = 1.0
) -> Path:
    """Target and reconstructions (ky, kz) of one slice, a zoomed region of each, and error maps on one scale."""
    reference = np.abs(truth)
    top = float(np.quantile(reference, 0.999))
    region = _zoomed(reference)
    panels = {"target": reference} | {name: np.abs(image) for name, image in images.items()}
    with plot.style():
        height = 1.9 * aspect * reference.shape[0] / reference.shape[1]
        figure, axes = plot.figure(3, len(panels), width=1.9, height=min(max(height, 1.2), 3.2))
        figure.suptitle(title)
        for column, (name, image) in enumerate(panels.items()):
            options: dict[str, Any] = {"vmin": 0, "vmax": top, "cmap": plot.IMAGE_MAP, "aspect": aspect}
            plot.show_image(axes[0, column], image, title=name, **options)
            plot.show_image(axes[1, column], image[region], **options)
            options |= {"vmax": top / ERROR_GAIN, "cmap": plot.ERROR_MAP, "title": f"error x {ERROR_GAIN}"}
            plot.show_image(axes[2, column], np.abs(image - reference), **options)
            axes[2, column].set_visible(column > 0)
        return plot.save(figure, path)


def draw_uncertainty(
    path: Path, truth: Complex, image: Complex, width: NDArray[np.float32], title: str, aspect: float = 1.0
) -> Path:
    """A slice (ky, kz) beside its error and the half-width that says how large the error may be, on one scale."""
    reference = np.abs(truth)
    top = float(np.quantile(reference, 0.999))
    error = np.abs(np.abs(image) - reference)
    most = float(np.quantile(width, 0.995))
    with plot.style():
        figure, ((first, second, third, last),) = plot.figure(1, 4, width=2.2, height=2.6)
        figure.suptitle(title)
        plot.show_image(
            first, np.abs(image), title="reconstruction", vmin=0, vmax=top, cmap=plot.IMAGE_MAP, aspect=aspect
        )
        options: dict[str, Any] = {"vmin": 0, "vmax": most, "cmap": plot.ERROR_MAP, "aspect": aspect}
        plot.show_image(second, error, title="error", **options)
        plot.show_image(third, width, title="half-width", **options)
        plot.show_image(
            last, error > width, title="error above it", vmin=0, vmax=1, cmap=plot.IMAGE_MAP, aspect=aspect
        )
        return plot.save(figure, path)


def draw_learned(path: Path, name: str, learned: LearnedTransform, density: Tensor, title: str) -> Path:
    """The weight that a learned transform gives each frequency and its point spread function, beside SENSE's.

    The point spread function is that of the sampling on average: M applied to density times the k-space of a
    point in the middle of the image.
    """
    operator, weights = learned.operator, learned.weights.numpy()
    ky, kz = weights.shape
    point = torch.zeros(ky, kz, dtype=operator.dtype)
    point[ky // 2, kz // 2] = 1
    kspace = density.to(operator.dtype) * fft2c(point)
    baseline = MODELS[BASELINE].shown
    spread = {baseline: ifft2c(kspace).abs(), name: operator(kspace).detach().abs()}
    colour = dict(zip(spread, plot.COLOURS, strict=False))
    sampled = np.where(density.numpy() > 0, 1.0, np.nan)
    with plot.style():
        figure, ((image, along, psf),) = plot.figure(1, 3, width=3.0, height=2.5)
        figure.suptitle(title)
        drawn = plot.show_image(
            image, weights * sampled, title="weight of each frequency", cmap="viridis", aspect="auto"
        )
        image.set(xlabel="kz", ylabel="ky")
        figure.colorbar(drawn, ax=image)
        _profiles(along, {name: weights * sampled, baseline: sampled}, colour)
        along.set(title="through the centre", xlabel="frequency / largest", ylabel="weight")
        along.margins(y=0.35)
        along.legend(fontsize=7, loc="upper center", ncols=2)
        for which, values in spread.items():
            line = (values[:, kz // 2] / values.max()).numpy()
            psf.semilogy(np.arange(ky) - ky // 2, line, label=which, color=colour[which])
        psf.set(title="point spread function", xlabel="voxels along y", ylabel="relative", ylim=(1e-5, 2))
        psf.legend()
        return plot.save(figure, path)


def _profiles(axes: Any, maps: Mapping[str, NDArray[np.float64]], colour: Mapping[str, str]) -> None:
    for name, weights in maps.items():
        ky, kz = weights.shape
        lines = {"ky": weights[:, kz // 2], "kz": weights[ky // 2]}
        for (axis, line), dash in zip(lines.items(), ("-", "--"), strict=True):
            frequency = (np.arange(len(line)) - len(line) // 2) / (len(line) // 2)
            axes.plot(frequency, line, dash, label=f"{name}, {axis}", color=colour[name])


def _liveliest(volume: Complex) -> int:
    """The slice with the most detail in the middle half of the volume."""
    count = len(volume)
    inner = range(count // 4, max(count - count // 4, count // 4 + 1))
    return max(inner, key=lambda index: float(np.abs(np.diff(np.abs(volume[index]), axis=0)).sum()))


def _zoomed(image: NDArray[np.float32]) -> tuple[slice, slice]:
    """The third of the image with the most detail, away from the border."""
    from scipy.ndimage import uniform_filter

    detail = np.abs(np.diff(image, axis=0, append=0)) + np.abs(np.diff(image, axis=1, append=0))
    sides = [max(n // 3, 8) for n in image.shape]
    inner = tuple(
        slice(n // 6 + side // 2, max(n - n // 6 - side // 2, n // 6 + side // 2 + 1))
        for n, side in zip(image.shape, sides, strict=True)
    )
    mean = uniform_filter(detail, sides)[inner]
    middle = np.unravel_index(mean.argmax(), mean.shape)
    corners = [int(at) + n // 6 for at, n in zip(middle, image.shape, strict=True)]
    y, z = (slice(corner, corner + side) for corner, side in zip(corners, sides, strict=True))
    return y, z
