"""From scores to a page for the browser: the tables, and test samples to look through."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from data.navier_stokes.diagnostics import spectrum
from lab import report
from lab.manifest import command_line
from lab.report import Curves, Page, Stack, Viewer
from lab.runs import FinishedRun
from lab.table import Table
from pde.figures import comparable, is_line, movies, shown_label
from pde.problems import OWN
from pde.scores import Result, seen_in_training
from pde.tables import cases

LOOKED_THROUGH = 4
"""Test samples to look through, besides those asked for."""


def write(results: Sequence[Result], tables: Sequence[Table], samples: Sequence[int], path: Path) -> Path:
    """The page; with no `samples` asked for it has no pictures."""
    problem, test = results[0].problem, results[0].test
    kind = "own data" if problem.name == OWN else "simulated"
    points, several = test.grid.resolution[: len(test.geometry.axes)], len(test) != 1
    grid = " x ".join(map(str, points))
    unseen = "which no training has seen"
    if any(map(seen_in_training, results)):
        unseen = "some of which a training has seen"
    page = Page(
        title=problem.title,
        compared=", ".join(dict.fromkeys(map(shown_label, results))),
        data=f"{len(test)} test sample{'s' * several} ({kind}) on {grid} points, {unseen}.",
        tables=tables,
        viewers=[_viewer(results, samples)] if samples else [],
        runs=_runs(results),
        command=command_line(),
    )
    return report.write(page, path)


def _runs(results: Sequence[Result]) -> dict[str, Sequence[FinishedRun]]:
    """The runs of each row, and of each case where there are several."""
    several = len(cases(results)) > 1
    found: dict[str, Sequence[FinishedRun]] = {}
    for result in results:
        label = f"{shown_label(result)}, {result.title}" if several else shown_label(result)
        found[label] = (*found.get(label, ()), *result.row.runs)
    return found


def _viewer(results: Sequence[Result], samples: Sequence[int]) -> Viewer:
    """Test samples of every case to look through, those asked for and a few more, with curves that follow."""
    here = [(title, comparable(results, case)) for case, title in cases(results).items()]
    stacks = [
        _stack(shown, title, sample)
        for title, shown in here
        for sample in dict.fromkeys((*samples, *range(min(LOOKED_THROUGH, len(shown[0].test)))))
    ]
    problem = results[0].problem
    frames = max(stack.truth.shape[0] for stack in stacks)
    first = 0 if problem.static else problem.frames_in
    alone = problem.static or is_line(results)
    labels = [] if alone else [str(first + number + 1) for number in range(frames)]
    over = ", x to the right, time upwards" if is_line(results) and not problem.static else ""
    title = f"{problem.title}: {problem.shown}{over}"
    notes = []
    if any(len(result.scores) > 1 for result in results):
        notes.append("Forecasts are those of the first run of each row.")
    if sum(len(shown) for _, shown in here) < len(results):
        notes.append("Rows that were tested on other samples than the first one are not shown.")
    return Viewer(title, "field", "frame", stacks, labels, note=" ".join(notes))


def _stack(results: Sequence[Result], title: str, sample: int) -> Stack:
    """One test sample of one case."""
    names = [shown_label(result) for result in results]
    truth, *made = movies(results, sample)
    scores, geometry = [result.scores[0] for result in results], results[0].test.geometry
    curves = []
    if not results[0].problem.static:
        errors = {name: np.array(each.per_frame[sample]) for name, each in zip(names, scores, strict=True)}
        steps = range(1, len(scores[0].per_frame[sample]) + 1)
        marked = not is_line(results)
        curves.append(Curves("relative L2 error", "steps forecast", steps, errors, marks_picture=marked))
    if is_line(results):
        across = {"truth": truth} | dict(zip(names, made, strict=True))
        last = {name: movie[0, 0] for name, movie in across.items()}
        which = "" if results[0].problem.static else ", last frame"
        x = results[0].test.grid.rows.tolist()
        curves.append(Curves(f"{results[0].problem.shown}{which}", "x", x, last))
    if scores[0].spectrum:
        shown = {"truth": truth} | dict(zip(names, made, strict=True))
        lines = {name: spectrum(torch.from_numpy(movie)).numpy()[:, 1:] for name, movie in shown.items()}
        k = range(1, lines["truth"].shape[1] + 1)
        curves.append(Curves("energy", "wavenumber", k, lines, log_x=True))
    positions = geometry.picture(results[0].test.grid.positions).numpy()
    if geometry.places and positions.shape == truth.shape[1:]:
        places, number = np.unique(positions, return_inverse=True)
        lines = {name: _by_place(each - truth, number) for name, each in zip(names, made, strict=True)}
        curves.append(Curves("r.m.s. error", geometry.place, places.tolist(), lines))
    latitudes = geometry.map_latitudes(results[0].test.grid.rows)
    return Stack(
        choice={"case": title, "sample": str(sample)},
        truth=truth,
        made=dict(zip(names, made, strict=True)),
        notes={
            name: f"{each.errors[sample]:.4f}" + ("" if results[0].problem.static else " over all frames")
            for name, each in zip(names, scores, strict=True)
        },
        curves=curves,
        aspect=0.6 * truth.shape[2] / truth.shape[1] if is_line(results) else 1.0,
        unit=results[0].test.units.get(results[0].problem.shown, ""),
        latitudes=[] if latitudes is None else latitudes.tolist(),
    )


def _by_place(errors: np.ndarray, number: np.ndarray) -> np.ndarray:
    """The root mean square of pictures of errors (frame, place), by the number of the place of each of their points."""
    points = number.ravel()
    squares = [np.bincount(points, frame.ravel() ** 2) / np.bincount(points) for frame in errors]
    return np.sqrt(squares)
