"""Pictures: reconstructions with their errors, and what mSENSE has learned."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from data.scans.sense import fft2c, ifft2c
from lab import plot
from monarch_core import GridMonarch, LinearOperator, Separable
from mri.metrics import Complex, psnr
from mri.models.msense import MSense

ERROR_GAIN = 5


def draw_reconstructions(
    path: Path, target: Complex, images: Mapping[str, Complex], title: str, aspect: float = 1.0
) -> Path:
    """Target and reconstructions of one slice, a zoomed region of each, and error maps on one scale."""
    middle = _liveliest(target)
    reference = np.abs(target[middle])
    top = float(np.quantile(reference, 0.999))
    region = _zoomed(reference)
    panels = {"target": reference} | {name: np.abs(volume[middle]) for name, volume in images.items()}
    with plot.style():
        height = 1.9 * aspect * reference.shape[0] / reference.shape[1]
        figure, axes = plot.figure(3, len(panels), width=1.9, height=min(max(height, 1.2), 3.2))
        figure.suptitle(title)
        for column, (name, image) in enumerate(panels.items()):
            label = name if name == "target" else f"{name}, {psnr(images[name], target):.1f} dB"
            options: dict[str, Any] = {"vmin": 0, "vmax": top, "cmap": plot.IMAGE_MAP, "aspect": aspect}
            plot.show_image(axes[0, column], image, title=label, **options)
            plot.show_image(axes[1, column], image[region], **options)
            error = np.abs(image - reference)
            options |= {"vmax": top / ERROR_GAIN, "cmap": plot.ERROR_MAP}
            shown = f"error x {ERROR_GAIN}" if column else ""
            plot.show_image(axes[2, column], error, title=shown, **options)
            axes[2, column].set_visible(column > 0)
        return plot.save(figure, path)


def draw_learned(path: Path, method: MSense, density: Tensor, title: str) -> Path:
    """The weight mSENSE gives each frequency and its point spread function, beside SENSE's.

    The point spread function is that of the sampling on average: M applied to density times the k-space of a
    point in the middle of the image.
    """
    operator = cast(LinearOperator, method.operators[0])
    weights = frequency_weights(operator).numpy()
    ky, kz = weights.shape
    point = torch.zeros(ky, kz, dtype=operator.dtype)
    point[ky // 2, kz // 2] = 1
    kspace = density.to(operator.dtype) * fft2c(point)
    spread = {"SENSE": ifft2c(kspace).abs(), "mSENSE": operator(kspace).detach().abs()}
    sampled = np.where(density.numpy() > 0, 1.0, np.nan)
    with plot.style():
        figure, ((image, along, psf),) = plot.figure(1, 3, width=3.0, height=2.5)
        figure.suptitle(title)
        drawn = plot.show_image(
            image, weights * sampled, title="weight of each frequency", cmap="viridis", aspect="auto"
        )
        image.set(xlabel="kz", ylabel="ky")
        figure.colorbar(drawn, ax=image)
        _profiles(along, {"mSENSE": weights * sampled, "SENSE": sampled})
        along.set(title="through the centre", xlabel="frequency / largest", ylabel="weight")
        along.margins(y=0.35)
        along.legend(fontsize=7, loc="upper center", ncols=2)
        for name, values in spread.items():
            line = (values[:, kz // 2] / values.max()).numpy()
            psf.semilogy(np.arange(ky) - ky // 2, line, label=name, color=_COLOUR[name])
        psf.set(title="point spread function", xlabel="voxels along y", ylabel="relative", ylim=(1e-5, 2))
        psf.legend()
        return plot.save(figure, path)


def frequency_weights(operator: LinearOperator) -> Tensor:
    """|M e_k| for every frequency k = (ky, kz): 1 for the orthonormal inverse DFT.

    >>> from mri.models.msense import inverse_dft
    >>> torch.allclose(frequency_weights(inverse_dft((6, 4), "grid", None, torch.complex64)), torch.ones(6, 4))
    True
    """
    with torch.no_grad():
        if isinstance(operator, GridMonarch):
            R, L = operator.monarch.factors()
            return torch.einsum("ajb,ja->ab", R.abs().square().sum(2), L.abs().square().sum((1, 3))).sqrt()
        rows, columns = (
            cast(LinearOperator, axis).to_dense().norm(dim=0) for axis in cast(Separable, operator).axes
        )
        return torch.outer(rows, columns)


_COLOUR = {"SENSE": plot.COLOURS[0], "mSENSE": plot.COLOURS[1]}


def _profiles(axes: object, maps: Mapping[str, NDArray[np.float64]]) -> None:
    for name, weights in maps.items():
        ky, kz = weights.shape
        lines = {"ky": weights[:, kz // 2], "kz": weights[ky // 2]}
        for (axis, line), dash in zip(lines.items(), ("-", "--"), strict=True):
            frequency = (np.arange(len(line)) - len(line) // 2) / (len(line) // 2)
            axes.plot(frequency, line, dash, label=f"{name}, {axis}", color=_COLOUR[name])  # type: ignore[attr-defined]


def _liveliest(volume: Complex) -> int:
    """The slice with the most detail in the middle half of the volume."""
    count = len(volume)
    inner = range(count // 4, max(count - count // 4, count // 4 + 1))
    return max(inner, key=lambda index: float(np.abs(np.diff(np.abs(volume[index]), axis=0)).sum()))


def _zoomed(image: NDArray[np.float32]) -> tuple[slice, slice]:
    """The third of the image with the most detail, away from the border."""
    detail = np.abs(np.diff(image, axis=0, append=0)) + np.abs(np.diff(image, axis=1, append=0))
    sides = [max(n // 3, 8) for n in image.shape]
    best, place = -1.0, (0, 0)
    for y in range(image.shape[0] // 6, image.shape[0] - sides[0] - image.shape[0] // 6 + 1, 2):
        for z in range(image.shape[1] // 6, image.shape[1] - sides[1] - image.shape[1] // 6 + 1, 2):
            found = float(detail[y : y + sides[0], z : z + sides[1]].sum())
            if found > best:
                best, place = found, (y, z)
    return slice(place[0], place[0] + sides[0]), slice(place[1], place[1] + sides[1])
