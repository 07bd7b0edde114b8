"""From scores to pictures: error per step and per place, energy spectra, truth beside prediction, animations."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from lab import plot
from lab.errors import UserError
from pde.models import MODELS
from pde.predictor import load
from pde.scores import Result, forecast
from pde.sources import samples_of
from pde.tables import CORRELATIONS, cases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = 4
"""Models beside each other in a picture of square fields; the others go below them."""


def comparable(results: Sequence[Result], case: str) -> list[Result]:
    """The rows of a case that can share a picture: those with the test samples of the first, from the same frame on."""

    def samples(result: Result) -> list[Any]:
        described = result.test.describe()
        same = [described[name] for name in ("fingerprint", "samples", "frames", "grid")]
        return [*same, result.problem.frames_in]

    here = [result for result in results if result.case == case]
    return [result for result in here if samples(result) == samples(here[0])]


def shown_label(result: Result) -> str:
    """What figures call a row: the model's title and its options."""
    return result.label.replace(result.row.model, MODELS[result.row.model].shown, 1)


def _by_case(
    results: Sequence[Result], path: Path, label: str, draw: "Callable[[Axes, list[Result]], None]"
) -> Path:
    """One panel per case, with one legend beside them."""
    titles = cases(results)
    with plot.style():
        figure, axes = plot.figure(1, len(titles), width=3.4, height=2.8)
        for panel, (case, title) in zip(axes[0], titles.items(), strict=True):
            panel.set_title(title)
            draw(panel, [result for result in results if result.case == case])
        axes[0, 0].set_ylabel(label)
        plot.legend_beside(figure)
        return plot.save(figure, path)


def _counted(values: Sequence[float] | np.ndarray[Any, Any]) -> range:
    """The numbers of values from 1: those of runs with other grids or longer forecasts have a length of their own."""
    return range(1, len(values) + 1)


def error_curves(results: Sequence[Result], path: Path) -> Path:
    """Relative error against the number of steps forecast, mean over test samples."""

    def draw(panel: "Axes", here: list[Result]) -> None:
        for result in here:
            curve = np.mean(result.scores[0].per_frame, axis=0)
            panel.semilogy(_counted(curve), curve, label=shown_label(result))
        panel.set_xlabel(f"steps forecast{here[0].test.step_text and ','}{here[0].test.step_text}")

    return _by_case(results, path, "relative L2 error", draw)


def energy_spectra(results: Sequence[Result], path: Path) -> Path:
    """Energy by wavenumber in the last frame, mean over test samples: the truth and every forecast."""

    def draw(panel: "Axes", here: list[Result]) -> None:
        truth = max((result.scores[0].true_spectrum[1:] for result in here), key=len)
        panel.loglog(_counted(truth), truth, color="black", linewidth=2.5, alpha=0.4, label="truth")
        for result in here:
            made = result.scores[0].spectrum[1:]
            panel.loglog(_counted(made), made, label=shown_label(result))
        panel.set_xlabel("wavenumber")

    return _by_case(results, path, "energy in the last frame", draw)


def correlations(results: Sequence[Result], path: Path) -> Path:
    """The correlation with the truth against the number of steps forecast, mean over test samples."""

    def draw(panel: "Axes", here: list[Result]) -> None:
        for level in CORRELATIONS:
            panel.axhline(level, color="grey", linewidth=0.8, linestyle=":")
        for result in here:
            curve = np.mean(result.scores[0].correlations, axis=0)
            panel.plot(_counted(curve), curve, label=shown_label(result))
        panel.set_xlabel("steps forecast")

    return _by_case(results, path, "correlation with the truth", draw)


def energies(results: Sequence[Result], path: Path) -> Path:
    """The energy of a periodic flow against the number of steps forecast, mean over test samples, beside the truth."""

    def draw(panel: "Axes", here: list[Result]) -> None:
        truth = max((result.scores[0].true_energy for result in here), key=len)
        panel.semilogy(_counted(truth), truth, color="black", linewidth=2.5, alpha=0.4, label="truth")
        for result in here:
            made = result.scores[0].energy
            panel.semilogy(_counted(made), made, label=shown_label(result))
        panel.set_xlabel("steps forecast")

    return _by_case(results, path, "energy", draw)


def error_places(results: Sequence[Result], path: Path) -> Path:
    """The error against the place, as the geometry measures it."""

    def draw(panel: "Axes", here: list[Result]) -> None:
        for result in here:
            if result.scores[0].places:
                panel.semilogy(result.scores[0].places, result.scores[0].profile, label=shown_label(result))
                panel.set_xlabel(result.test.geometry.place)

    return _by_case(results, path, "r.m.s. error / spread of the field", draw)


def panels(results: Sequence[Result], sample: int, path: Path) -> Path:
    """The last frame of one test sample: truth, and for every model its forecast and its error.

    Of a flow on a line, all frames: x to the right, time upwards. Of a map on a line, curves.
    """
    truth, *made = (movie[-1] for movie in movies(results, sample))
    problem, test = results[0].problem, results[0].test
    if len(truth) == 1:
        return _curves(results, sample, path, truth[0], [prediction[0] for prediction in made])
    limit = float(np.abs(truth).max())
    field: dict[str, Any] = {"cmap": plot.FIELD_MAP, "vmin": -limit, "vmax": limit}
    wrong = [np.abs(prediction - truth) for prediction in made]
    frame = "" if problem.static else f", frame {test.frames}"
    lines, columns = truth.shape
    if is_line(results):
        field["aspect"], frame = "auto", ", time upwards"
        lines, columns = 3, 4
    across = max(2, ACROSS * lines // columns)
    bands = -(-len(results) // across)
    error_scale: dict[str, Any] = {"cmap": plot.ERROR_MAP, "vmin": 0}
    error_scale |= {"vmax": max(float(error.max()) for error in wrong), "aspect": field.get("aspect")}
    with plot.style():
        width = min(across, len(results)) + 1
        figure, axes = plot.figure(2 * bands, width, width=1.9 * columns / lines, height=1.9)
        for panel in axes.flat:
            panel.axis("off")
        title = f"{test.labelled(problem.shown)}, truth{frame}"
        first = plot.show_image(axes[0, 0], truth, title=title, **field)
        figure.colorbar(first, ax=axes[0, 0], shrink=0.8)
        for number, (result, prediction, error) in enumerate(zip(results, made, wrong, strict=True)):
            band, column = divmod(number, across)
            above, below = axes[2 * band : 2 * band + 2, column + 1]
            title = f"{shown_label(result)}\n{result.scores[0].errors[sample]:.3f}"
            plot.show_image(above, prediction, title=title, **field)
            drawn = plot.show_image(below, error, title="|error|", **error_scale)
        figure.colorbar(drawn, ax=axes[1, 0], shrink=0.8, location="right", label="|error|")
        return plot.save(figure, path)


def _curves(
    results: Sequence[Result], sample: int, path: Path, truth: np.ndarray[Any, Any], made: Sequence[Any]
) -> Path:
    """The answer on a line, and below it the error, over x."""
    test, problem = results[0].test, results[0].problem
    length = float(test.parameters.get("length_x", 1.0))
    x = length * test.grid.rows.numpy()
    with plot.style():
        figure, axes = plot.figure(2, 1, width=4.6, height=2.0)
        above, below = axes[:, 0]
        above.plot(x, truth, color="black", linewidth=2.5, alpha=0.4, label="truth")
        for result, prediction in zip(results, made, strict=True):
            label = f"{shown_label(result)}, {result.scores[0].errors[sample]:.3f}"
            (drawn,) = above.plot(x, prediction, label=label)
            below.plot(x, prediction - truth, color=drawn.get_color(), linestyle=drawn.get_linestyle())
        above.set_ylabel(test.labelled(problem.shown))
        below.set_ylabel("error")
        below.set_xlabel(test.labelled("x"))
        plot.legend_beside(figure)
        return plot.save(figure, path)


def is_line(results: Sequence[Result]) -> bool:
    """Whether the fields lie on a line."""
    return results[0].test.geometry.axes == ("x",)


def animation(results: Sequence[Result], sample: int, path: Path) -> Path:
    """The rollout of one test sample as an animated GIF: the truth, then every model, side by side."""
    shown = movies(results, sample)
    limit = np.abs(shown[0]).max() or 1.0
    return plot.animation([movie / limit for movie in shown], path, tile=128, milliseconds=200)


def movies(results: Sequence[Result], sample: int) -> list[np.ndarray[Any, Any]]:
    """The wanted frames of a test sample, (frame, line, column): the truth, then those of the first run of each row.

    A line's are one picture of all frames, time upwards.
    """
    test, problem = results[0].test, results[0].problem
    if not 0 <= sample < len(test):
        raise UserError(f"--samples: there are {len(test)} test samples, from 0; not {sample}.")
    one = samples_of(test.one(sample), problem)
    symmetries = problem.symmetries
    made = [forecast(load(result.row.runs[0].weights, result.images, symmetries), one) for result in results]
    return [_movie(results[0], fields[0]) for fields in (one.wanted, *made)]


def _movie(result: Result, fields: Tensor) -> np.ndarray[Any, Any]:
    """The field that the problem shows of (row, column, frame, field), as images (frame, line, column)."""
    field = fields[..., result.test.names.index(result.problem.shown)]
    pictures = np.stack([result.test.geometry.picture(frame).numpy() for frame in field.unbind(-1)])
    return pictures[::-1].reshape(1, len(pictures), -1) if is_line([result]) else pictures
