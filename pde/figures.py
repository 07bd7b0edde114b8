"""Pictures of forecasts: error per step and per place, energy spectra, truth beside prediction, animations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from data.navier_stokes.diagnostics import spectrum
from lab import plot
from lab.files import atomic_path
from pde.evaluate import Evaluation
from pde.profile import error_profile
from pde.results import cases

ACROSS = 4
"""Models beside each other in a picture of square fields; the others go below them."""


def error_curves(evaluations: Sequence[Evaluation], path: Path) -> Path:
    """Relative error against the number of steps forecast, mean over test samples; one panel per case."""
    titles = cases(evaluations)
    with plot.style():
        figure, axes = plot.figure(1, len(titles), width=3.4, height=2.8)
        for panel, (case, title) in zip(axes[0], titles.items(), strict=True):
            for evaluation in (e for e in evaluations if e.case == case):
                curve = evaluation.per_frame.mean(0)
                panel.semilogy(range(1, len(curve) + 1), curve, label=evaluation.label)
            panel.set(title=title, xlabel="steps forecast")
        axes[0, 0].set_ylabel("relative L2 error")
        plot.legend_beside(figure)
        return plot.save(figure, path)


def error_places(evaluations: Sequence[Evaluation], path: Path) -> Path:
    """The error against the distance from the nearest wall, or by latitude."""
    problem = evaluations[0].problem
    with plot.style():
        figure, axes = plot.figure(1, 1, width=4.6, height=3.2)
        panel = axes[0, 0]
        for evaluation in evaluations:
            panel.semilogy(*error_profile(evaluation), label=evaluation.label)
        where = "latitude (degrees)" if problem.sphere else "distance from the nearest wall"
        panel.set(title=problem.title, xlabel=where, ylabel="r.m.s. error / spread of the field")
        plot.legend_beside(figure)
        return plot.save(figure, path)


def energy_spectra(evaluations: Sequence[Evaluation], path: Path) -> Path:
    """Energy by wavenumber in the last frame, mean over test samples: the truth and every forecast."""
    titles = cases(evaluations)
    with plot.style():
        figure, axes = plot.figure(1, len(titles), width=3.4, height=2.8)
        for panel, (case, title) in zip(axes[0], titles.items(), strict=True):
            here = [e for e in evaluations if e.case == case]
            truth = spectrum(here[0].truth[..., -1, 0]).mean(0)[1:]
            k = np.arange(1, len(truth) + 1)
            panel.loglog(k, truth, color="black", linewidth=2.5, alpha=0.4, label="truth")
            for evaluation in here:
                shells = spectrum(evaluation.prediction[..., -1, 0]).mean(0)[1:]
                panel.loglog(k, shells, label=evaluation.label)
            panel.set(title=f"{title}, last frame", xlabel="wavenumber")
        axes[0, 0].set_ylabel("energy")
        plot.legend_beside(figure)
        return plot.save(figure, path)


def panels(evaluations: Sequence[Evaluation], sample: int, path: Path) -> Path:
    """The last frame of one test sample: truth, and for every model its forecast and its error."""
    problem, domain = evaluations[0].problem, evaluations[0].domain
    frames = evaluations[0].truth.shape[3]
    truth = evaluations[0].truth[sample, ..., -1, problem.shown]
    limit = float(truth.abs().max())
    field = {"cmap": plot.FIELD_MAP, "vmin": -limit, "vmax": limit, "origin": "lower"}
    made = [e.prediction[sample, ..., -1, problem.shown] for e in evaluations]
    wrong = [(prediction - truth).abs() for prediction in made]
    worst = max(float(error.max()) for error in wrong)
    frame = "" if problem.static else f", frame {frames + problem.frames_in}"
    name = "truth" if problem.name == "navier-stokes" else f"{domain.fields[problem.shown]}, truth"
    rows, columns = domain.resolution
    across = max(2, ACROSS * rows // columns)
    bands = -(-len(evaluations) // across)
    shown = {"cmap": plot.ERROR_MAP, "vmin": 0, "vmax": worst, "origin": "lower"}
    with plot.style():
        width = min(across, len(evaluations)) + 1
        figure, axes = plot.figure(2 * bands, width, width=1.9 * columns / rows, height=1.9)
        for panel in axes.flat:
            panel.axis("off")
        first = plot.show_image(axes[0, 0], _picture(truth, problem.sphere), title=name + frame, **field)
        figure.colorbar(first, ax=axes[0, 0], shrink=0.8)
        for number, (evaluation, prediction, error) in enumerate(zip(evaluations, made, wrong, strict=True)):
            band, column = divmod(number, across)
            above, below = axes[2 * band : 2 * band + 2, column + 1]
            title = f"{evaluation.label}\n{float(evaluation.errors[sample]):.3f}"
            plot.show_image(above, _picture(prediction, problem.sphere), title=title, **field)
            drawn = plot.show_image(below, _picture(error, problem.sphere), title="|error|", **shown)
        figure.colorbar(drawn, ax=axes[1, 0], shrink=0.8, location="right", label="|error|")
        return plot.save(figure, path)


def animation(evaluations: Sequence[Evaluation], sample: int, path: Path, tile: int = 128) -> Path:
    """The rollout of one test sample as an animated GIF: the truth, then every model, side by side."""
    from matplotlib import colormaps
    from PIL import Image

    problem = evaluations[0].problem
    fields = [evaluations[0].truth[sample], *(e.prediction[sample] for e in evaluations)]
    fields = [field[..., problem.shown] for field in fields]
    limit = float(fields[0].abs().max())
    colours = (255 * colormaps[plot.FIELD_MAP](np.linspace(0, 1, 256))[:, :3]).round().astype(np.uint8)
    pictures = []
    for frame in range(fields[0].shape[-1]):
        tiles = [np.flipud(_picture(field[..., frame], problem.sphere)) for field in fields]
        levels = (255 * (np.clip(np.concatenate(tiles, axis=1) / limit, -1, 1) + 1) / 2).round()
        picture = Image.fromarray(levels.astype(np.uint8))
        picture.putpalette(colours.tobytes())
        height, width = tiles[0].shape
        size = (round(tile * width / height) * len(fields), tile)
        pictures.append(picture.resize(size, Image.Resampling.NEAREST))
    with atomic_path(path) as temporary:
        pictures[0].save(temporary, save_all=True, append_images=pictures[1:], duration=200, loop=0)
    return path


def _picture(field: Tensor, sphere: bool) -> np.ndarray[Any, Any]:
    """(x, y), or (colatitude, longitude), as an image whose first line is at the bottom."""
    return (field.flip(0) if sphere else field.T).numpy()
