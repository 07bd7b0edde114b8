"""Look at a file of fields: a contact sheet, and how large the fields are and how much they change."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from data.field_config import ShowConfig
from data.fields import Fields, open_fields
from lab import plot
from lab.console import say
from lab.errors import UserError
from lab.table import Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def show(config: ShowConfig) -> Path:
    """Write `<file>.png`, print the summary, return the path."""
    if config.samples < 1 or config.frames < 1:
        raise UserError(
            f"--samples and --frames must be 1 or more, not {config.samples} and {config.frames}."
        )
    fields = open_fields(config.file)
    say(
        f"{config.file.name}: {fields.problem}, {len(fields)} samples of "
        f"{'one solution' if fields.static else f'{fields.frames} frames'}, {fields.height} x {fields.width}, "
        f"fields {', '.join(fields.names)}"
    )
    chosen, _ = fields.split(min(config.samples, len(fields)), 0)
    count = min(config.frames, fields.frames)
    frames = np.linspace(0, fields.frames - 1, count).round().astype(int).tolist()
    summary(chosen, frames).print()
    folder = config.out or config.file.parent
    draw = static_sheet if fields.static else sheet
    path = draw(chosen, frames, folder / f"{config.file.stem}.png")
    say(f"wrote {path}")
    return path


def summary(fields: Fields, frames: list[int]) -> Table:
    """Root mean squares over the area, and their change since the frame before, of some samples."""
    columns = [Column("time", "time", digits=3)]
    for name in fields.names:
        columns += [Column(name, f"{name}, rms", digits=4), Column(f"{name} change", "change", digits=3)]
    table = Table(columns)
    values = fields.load()
    for frame in frames:
        row: dict[str, Any] = {"time": float(fields.times[frame])}
        for i, name in enumerate(fields.names):
            now = _rms(values[..., frame, i], fields.weights)
            row[name] = now
            if frame:
                change = values[..., frame, i] - values[..., frame - 1, i]
                row[f"{name} change"] = _rms(change, fields.weights) / now
        table.rows.append(row)
    return table


def _rms(values: Tensor, weights: Tensor | None) -> float:
    """The root of the mean square of [sample, row, column]."""
    squares = values.double().square().mean((0, 2))
    return float((squares if weights is None else squares * weights).mean().sqrt())


def sheet(fields: Fields, frames: list[int], path: Path) -> Path:
    """A row for every field of every sample, a column for some frames; each row has its own colour scale."""
    values = fields.load()
    shown = [(i, j) for i in range(len(fields)) for j in range(len(fields.names))]
    shape = _Shape(fields)
    with plot.style():
        figure, axes = plot.figure(len(shown), len(frames), width=shape.width, height=1.35)
        for number, (row, (sample, field)) in enumerate(zip(axes, shown, strict=True)):
            limit = float(values[sample, ..., frames, field].abs().max())
            for panel, frame in zip(row, frames, strict=True):
                title = f"t = {float(fields.times[frame]):g}" if number == 0 else ""
                drawn = shape.draw(panel, values[sample, ..., frame, field], title, limit)
            row[0].set_ylabel(fields.names[field], fontsize=8)
            figure.colorbar(drawn, ax=row, shrink=0.85, aspect=12, pad=0.01).ax.tick_params(labelsize=7)
        return plot.save(figure, path)


def static_sheet(fields: Fields, frames: list[int], path: Path) -> Path:
    """A column for every sample: its input above its solution."""
    inputs, solution, shape = fields.load_inputs(), fields.load(), _Shape(fields)
    with plot.style():
        figure, axes = plot.figure(2, len(fields), width=shape.width + 0.3, height=1.6)
        for i, (above, below) in enumerate(axes.T):
            for panel, field in ((above, inputs[i, ..., 0]), (below, solution[i, ..., 0, 0])):
                drawn = shape.draw(panel, field, "", None)
                figure.colorbar(drawn, ax=panel, shrink=0.85, aspect=12, pad=0.02).ax.tick_params(labelsize=7)
        axes[0, 0].set_ylabel("input", fontsize=8)
        axes[1, 0].set_ylabel(fields.names[0], fontsize=8)
        return plot.save(figure, path)


class _Shape:
    """How a grid lies on paper: x to the right and y upwards, or the map of the sphere with the north above."""

    def __init__(self, fields: Fields) -> None:
        self.sphere = fields.weights is not None
        self.width = 2.4 if self.sphere else 1.5

    def draw(self, axes: "Axes", field: Tensor, title: str, limit: float | None) -> Any:
        """One field; symmetric colours up to the limit, or those of magnitudes without one."""
        picture = field if self.sphere else field.T.flip(0)
        scale = (
            {"cmap": "viridis"} if limit is None else {"cmap": plot.FIELD_MAP, "vmin": -limit, "vmax": limit}
        )
        return plot.show_image(axes, picture, title=title, **scale)
