"""From runs to pictures."""

from collections.abc import Sequence
from pathlib import Path

from lab import plot
from lab.demo.models import MODELS
from lab.demo.scores import Result


def learning_curves(results: Sequence[Result], path: Path) -> Path:
    """The validation error of every run against its epochs."""
    with plot.style():
        figure, ((axes,),) = plot.figure(width=4.5, height=3)
        for result in results:
            row = result.row
            for run in row.runs:
                metrics = run.metrics("error")
                name = row.label.replace(row.model, MODELS[row.model].shown, 1)
                label = f"{name}, size {run.config['size']}, seed {run.seed}"
                curve = [each["error"] for each in metrics]
                axes.semilogy([each["epoch"] for each in metrics], curve, label=label)
        axes.set(xlabel="epoch", ylabel="relative error on new vectors")
        axes.set_title("Recovering a hidden Monarch matrix")
        axes.legend()
        return plot.save(figure, path)
