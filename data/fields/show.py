"""Look at a file of fields: a contact sheet, an animation, and a table of what the fields are like."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from data.fields.options import ShowConfig
from data.fields.reader import Fields, open_fields
from lab import plot
from lab.console import say
from lab.table import Column, Table


def sizes(fields: Fields, frames: list[int]) -> Table:
    """Root mean squares over the area, and their change since the frame before, at some frames."""
    columns = [Column("time", digits=3)]
    for name in fields.names:
        columns += [Column(name, f"{name}, rms", digits=4), Column(f"{name} change", "change", digits=3)]
    table, values, weights = Table(columns), fields.load(), fields.grid.weights
    for frame in frames:
        row: dict[str, Any] = {"time": float(fields.times[frame])}
        for i, name in enumerate(fields.names):
            now = _rms(values[..., frame, i], weights)
            row[name] = now
            if frame and now > 0:
                change = values[..., frame, i] - values[..., frame - 1, i]
                row[f"{name} change"] = _rms(change, weights) / now
        table.rows.append(row)
    return table


def show(config: ShowConfig, summary: Callable[[Fields, list[int]], Table] = sizes) -> list[Path]:
    """Write `<file>.png` and, where fields change with time, `<file>.gif`; print the summary; return the paths."""
    fields = open_fields(config.file, told=config)
    rows, columns = fields.grid.resolution
    known = {key: value for key, value in fields.parameters.items() if key == "nu"}
    words = [f"{len(fields)} samples of {'one solution' if fields.static else f'{fields.frames} frames'}"]
    words += [f"{rows} x {columns}", *(f"{key} = {value:g}" for key, value in known.items())]
    say(f"{config.file.name}: {fields.problem}, {', '.join(words)}, fields {', '.join(fields.names)}")
    chosen, _ = fields.split(min(config.samples, len(fields)), 0)
    count = min(config.frames, fields.frames)
    frames = np.linspace(0, fields.frames - 1, count).round().astype(int).tolist()
    summary(chosen, frames).print()
    target = (config.out or config.file.parent) / f"{config.file.stem}.png"
    line = fields.geometry.axes == ("x",)
    drawing = line_sheet if line else static_sheet if fields.static else partial(sheet, frames=frames)
    pictures = [drawing(chosen, path=target)]
    if not fields.static and not line:
        pictures.append(animation(chosen, target.with_suffix(".gif")))
    say("wrote " + " and ".join(str(picture) for picture in pictures))
    return pictures


def sheet(fields: Fields, frames: list[int], path: Path) -> Path:
    """One row for every field of every sample, one column for some frames; each row has its own colour scale."""
    values = fields.load()
    shown = [(i, j) for i in range(len(fields)) for j in range(len(fields.names))]
    with plot.style():
        figure, axes = plot.figure(len(shown), len(frames), width=_width(fields), height=1.35)
        for number, (row, (sample, field)) in enumerate(zip(axes, shown, strict=True)):
            limit = float(values[sample, ..., frames, field].abs().max())
            for panel, frame in zip(row, frames, strict=True):
                unit = fields.units.get("time", "")
                title = f"t = {float(fields.times[frame]):g} {unit}".rstrip() if number == 0 else ""
                picture = fields.geometry.picture(values[sample, ..., frame, field])
                scale: dict[str, Any] = {"cmap": plot.FIELD_MAP, "vmin": -limit, "vmax": limit}
                drawn = plot.show_image(panel, picture, title=title, **scale)
            row[0].set_ylabel(fields.labelled(fields.names[field]), fontsize=8)
            figure.colorbar(drawn, ax=row, shrink=0.85, aspect=12, pad=0.01).ax.tick_params(labelsize=7)
        return plot.save(figure, path)


def static_sheet(fields: Fields, path: Path) -> Path:
    """One column for every sample: its input above its solution."""
    inputs, solution = fields.load_inputs(), fields.load()
    with plot.style():
        figure, axes = plot.figure(2, len(fields), width=_width(fields) + 0.3, height=1.6)
        for i, (above, below) in enumerate(axes.T):
            for panel, field in ((above, inputs[i, ..., 0]), (below, solution[i, ..., 0, 0])):
                drawn = plot.show_image(panel, fields.geometry.picture(field), cmap="viridis")
                figure.colorbar(drawn, ax=panel, shrink=0.85, aspect=12, pad=0.02).ax.tick_params(labelsize=7)
        axes[0, 0].set_ylabel(fields.inputs[0], fontsize=8)
        axes[1, 0].set_ylabel(fields.names[0], fontsize=8)
        return plot.save(figure, path)


def line_sheet(fields: Fields, path: Path) -> Path:
    """One row for every field, one column for every sample: x to the right, time upwards; of a map, curves."""
    values, x = fields.load(), fields.grid.rows.numpy()
    inputs = fields.load_inputs() if fields.static else None
    with plot.style():
        names = fields.names if inputs is None else (*fields.inputs, *fields.names)
        figure, axes = plot.figure(len(names), len(fields), width=2.2, height=1.5)
        for j, name in enumerate(names):
            axes[j, 0].set_ylabel(fields.labelled(name), fontsize=8)
            for i, panel in enumerate(axes[j]):
                if inputs is not None:
                    given = len(fields.inputs)
                    curve = inputs[i, :, 0, j] if j < given else values[i, :, 0, 0, j - given]
                    panel.plot(x, curve.numpy())
                    continue
                field = values[i, :, 0, :, j].T.flip(0)
                limit = float(field.abs().max())
                scale: dict[str, Any] = {
                    "cmap": plot.FIELD_MAP,
                    "vmin": -limit,
                    "vmax": limit,
                    "aspect": "auto",
                }
                drawn = plot.show_image(panel, field, **scale)
                figure.colorbar(drawn, ax=panel, shrink=0.85, aspect=12, pad=0.02).ax.tick_params(labelsize=7)
        return plot.save(figure, path)


def animation(fields: Fields, path: Path) -> Path:
    """All samples side by side, the first field of each, a quarter of a second per frame."""
    # Of a sample that is zero throughout nothing has to be scaled.
    scaled = [sample / (float(sample.abs().max()) or 1.0) for sample in fields.load()[..., 0]]
    pictures = [[fields.geometry.picture(frame) for frame in movie.unbind(-1)] for movie in scaled]
    return plot.animation([np.stack(movie) for movie in pictures], path)


def _rms(values: Tensor, weights: Tensor | None) -> float:
    """The root of the mean square of [sample, row, column]."""
    squares = values.double().square().mean((0, 2))
    return float((squares if weights is None else squares * weights).mean().sqrt())


def _width(fields: Fields) -> float:
    """Of a panel in inches, beside a height of 1.35."""
    lines, columns = fields.geometry.picture(fields[0][..., 0, 0]).shape
    return 1.5 + 0.9 * (columns / lines - 1)
