"""From runs to pictures."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from lab import plot
from text.models import MODELS
from text.scores import CURVE, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = {"step": "optimiser steps", "minutes": "processor minutes of training"}


def learning_curves(results: Sequence[Result], path: Path) -> Path:
    """Validation loss against steps and against time: one row of panels per model, from scratch and fine-tuned.

    A dot marks where Monarch matrices turned dense.
    """
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(_title(result), []).append(result)
    with plot.style():
        figure, panels = plot.figure(len(groups), len(AXES), width=3.8, height=2.7)
        for (title, members), pair in zip(groups.items(), panels, strict=True):
            for axes, (key, words) in zip(pair, AXES.items(), strict=True):
                for member in members:
                    _draw(axes, member, key)
                axes.set(xlabel=words, ylabel="bits per byte, validation", title=title)
                axes.set_yscale("log")
                axes.yaxis.set_major_formatter("{x:.2f}")
                axes.yaxis.set_minor_formatter("{x:.2f}")
            pair[-1].legend(fontsize=7)
        return plot.save(figure, path)


def _title(result: Result) -> str:
    how = {"all": "from scratch", "first": "pretraining", "second": "fine-tuning"}[result.setting.part]
    return f"{MODELS[result.row.model].shown} {result.row.config['size']}, {how}"


def _draw(axes: "Axes", result: Result, key: str) -> None:
    """The mean curve of a row's seeds: they have equally many validations."""
    curves = [run.metrics(*CURVE) for run in result.row.runs]
    epochs = list(zip(*curves, strict=False))
    x = [fmean(_place(row, key) for row in epoch) for epoch in epochs]
    y = [fmean(row["bits_per_byte"] for row in epoch) for epoch in epochs]
    label = result.row.config["setting"]
    if result.is_budgeted:
        label += f", {result.row.config['minutes']:g} minutes"
    words = result.row.label.removeprefix(result.row.model)
    (line,) = axes.plot(x, y, label=label + words)
    if result.setting.switches:
        at = result.row.config["switch_at"]
        # The first validation at or after the switch is the point to mark where the two coincide, as they mostly do.
        index = min(max(round(at * len(epochs)) - 1, 0), len(epochs) - 1)
        axes.plot(x[index], y[index], "o", color=line.get_color(), markersize=5)


def _place(row: dict[str, float], key: str) -> float:
    return row["train_seconds"] / 60 if key == "minutes" else row[key]
