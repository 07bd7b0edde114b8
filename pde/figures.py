"""Pictures of forecasts: error per step and per place, energy spectra, truth beside prediction, animations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from data.navier_stokes.diagnostics import spectrum
from lab import plot
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
    """The error against the place, as the geometry measures it."""
    problem, geometry = evaluations[0].problem, evaluations[0].grid.geometry
    with plot.style():
        figure, axes = plot.figure(1, 1, width=4.6, height=3.2)
        panel = axes[0, 0]
        for evaluation in evaluations:
            panel.semilogy(*error_profile(evaluation), label=evaluation.label)
        panel.set(title=problem.title, xlabel=geometry.place, ylabel="r.m.s. error / spread of the field")
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
    problem = evaluations[0].problem
    frames = evaluations[0].truth.shape[3]
    truth = _movie(evaluations[0], evaluations[0].truth[sample])[-1]
    limit = float(np.abs(truth).max())
    field = {"cmap": plot.FIELD_MAP, "vmin": -limit, "vmax": limit}
    made = [_movie(e, e.prediction[sample])[-1] for e in evaluations]
    wrong = [np.abs(prediction - truth) for prediction in made]
    frame = "" if problem.static else f", frame {frames + problem.frames_in}"
    lines, columns = truth.shape
    across = max(2, ACROSS * lines // columns)
    bands = -(-len(evaluations) // across)
    shown = {"cmap": plot.ERROR_MAP, "vmin": 0, "vmax": max(float(error.max()) for error in wrong)}
    with plot.style():
        width = min(across, len(evaluations)) + 1
        figure, axes = plot.figure(2 * bands, width, width=1.9 * columns / lines, height=1.9)
        for panel in axes.flat:
            panel.axis("off")
        first = plot.show_image(axes[0, 0], truth, title=f"{problem.shown}, truth{frame}", **field)
        figure.colorbar(first, ax=axes[0, 0], shrink=0.8)
        for number, (evaluation, prediction, error) in enumerate(zip(evaluations, made, wrong, strict=True)):
            band, column = divmod(number, across)
            above, below = axes[2 * band : 2 * band + 2, column + 1]
            title = f"{evaluation.label}\n{float(evaluation.errors[sample]):.3f}"
            plot.show_image(above, prediction, title=title, **field)
            drawn = plot.show_image(below, error, title="|error|", **shown)
        figure.colorbar(drawn, ax=axes[1, 0], shrink=0.8, location="right", label="|error|")
        return plot.save(figure, path)


def animation(evaluations: Sequence[Evaluation], sample: int, path: Path) -> Path:
    """The rollout of one test sample as an animated GIF: the truth, then every model, side by side."""
    movies = [_movie(evaluations[0], evaluations[0].truth[sample])]
    movies += [_movie(e, e.prediction[sample]) for e in evaluations]
    limit = np.abs(movies[0]).max()
    return plot.animation([movie / limit for movie in movies], path, tile=128, milliseconds=200)


def _movie(evaluation: Evaluation, fields: Tensor) -> np.ndarray[Any, Any]:
    """The field that the problem shows of (row, column, frame, field), as images (frame, line, column)."""
    field = fields[..., evaluation.fields.index(evaluation.problem.shown)]
    return np.stack([evaluation.grid.geometry.picture(frame).numpy() for frame in field.unbind(-1)])
