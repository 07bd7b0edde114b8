"""Pictures of forecasts: error per step, energy spectra, truth beside prediction, animations."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from data.navier_stokes.diagnostics import spectrum
from lab import plot
from lab.files import atomic_path
from pde.config import FRAMES_IN
from pde.evaluate import Evaluation
from pde.results import viscosities


def error_curves(evaluations: Sequence[Evaluation], path: Path) -> Path:
    """Relative error against the number of steps forecast, mean over test samples; one panel per viscosity."""
    nus = viscosities(evaluations)
    with plot.style():
        figure, axes = plot.figure(1, len(nus), width=3.4, height=2.8)
        for panel, nu in zip(axes[0], nus, strict=True):
            for evaluation in (e for e in evaluations if e.nu == nu):
                curve = evaluation.per_frame.mean(0)
                panel.semilogy(range(1, len(curve) + 1), curve, label=evaluation.label)
            panel.set(title=f"nu = {nu:g}", xlabel="steps forecast")
            panel.legend()
        axes[0, 0].set_ylabel("relative L2 error")
        return plot.save(figure, path)


def energy_spectra(evaluations: Sequence[Evaluation], path: Path) -> Path:
    """Energy by wavenumber in the last frame, mean over test samples: the truth and every forecast."""
    nus = viscosities(evaluations)
    with plot.style():
        figure, axes = plot.figure(1, len(nus), width=3.4, height=2.8)
        for panel, nu in zip(axes[0], nus, strict=True):
            here = [e for e in evaluations if e.nu == nu]
            truth = spectrum(here[0].truth[..., -1]).mean(0)[1:]
            k = np.arange(1, len(truth) + 1)
            panel.loglog(k, truth, color="black", linewidth=2.5, alpha=0.4, label="truth")
            for evaluation in here:
                shells = spectrum(evaluation.prediction[..., -1]).mean(0)[1:]
                panel.loglog(k, shells, label=evaluation.label)
            panel.set(title=f"nu = {nu:g}, last frame", xlabel="wavenumber")
            panel.legend()
        axes[0, 0].set_ylabel("energy")
        return plot.save(figure, path)


def panels(evaluations: Sequence[Evaluation], sample: int, path: Path) -> Path:
    """The last frame of one test sample: truth, and for every model its forecast and its error."""
    truth = evaluations[0].truth[sample, ..., -1]
    limit = float(truth.abs().max())
    field = {"cmap": plot.FIELD_MAP, "vmin": -limit, "vmax": limit, "origin": "lower"}
    wrong = [(e.prediction[sample, ..., -1] - truth).abs() for e in evaluations]
    worst = max(float(error.max()) for error in wrong)
    with plot.style():
        figure, axes = plot.figure(2, len(evaluations) + 1, width=1.9, height=1.9)
        frames = evaluations[0].truth.shape[-1] + FRAMES_IN
        first = plot.show_image(axes[0, 0], truth.T, title=f"truth, frame {frames}", **field)
        figure.colorbar(first, ax=axes[0, 0], shrink=0.8)
        axes[1, 0].axis("off")
        for column, (evaluation, error) in enumerate(zip(evaluations, wrong, strict=True), start=1):
            title = f"{evaluation.label}: {float(evaluation.errors[sample]):.3f}"
            plot.show_image(axes[0, column], evaluation.prediction[sample, ..., -1].T, title=title, **field)
            shown = {"cmap": plot.ERROR_MAP, "vmin": 0, "vmax": worst, "origin": "lower"}
            drawn = plot.show_image(axes[1, column], error.T, title="|error|", **shown)
        figure.colorbar(drawn, ax=axes[1, -1], shrink=0.8)
        return plot.save(figure, path)


def animation(evaluations: Sequence[Evaluation], sample: int, path: Path, tile: int = 160) -> Path:
    """The rollout of one test sample as an animated GIF: the truth, then every model, side by side."""
    from matplotlib import colormaps
    from PIL import Image

    fields = [evaluations[0].truth[sample], *(e.prediction[sample] for e in evaluations)]
    limit = float(fields[0].abs().max())
    colours = (255 * colormaps[plot.FIELD_MAP](np.linspace(0, 1, 256))[:, :3]).round().astype(np.uint8)
    pictures = []
    for frame in range(fields[0].shape[-1]):
        row = np.concatenate([np.flipud(field[..., frame].T.numpy()) for field in fields], axis=1)
        levels = (255 * (np.clip(row / limit, -1, 1) + 1) / 2).round().astype(np.uint8)
        picture = Image.fromarray(levels)
        picture.putpalette(colours.tobytes())
        pictures.append(picture.resize((tile * len(fields), tile), Image.Resampling.NEAREST))
    with atomic_path(path) as temporary:
        pictures[0].save(temporary, save_all=True, append_images=pictures[1:], duration=200, loop=0)
    return path
