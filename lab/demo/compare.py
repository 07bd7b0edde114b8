"""The demonstration's result: a table of both models and a figure of how they learn."""

from lab import plot
from lab.console import console, say
from lab.demo.recover import build_model
from lab.gather import finished_runs
from lab.paths import runs_dir
from lab.table import Column, Score, Table


def table(latex: bool = False) -> Table:
    """Gather the finished runs, print the table, write it and the learning curves."""
    runs = finished_runs("demo")
    result = Table(
        [
            Column("model", "model"),
            Column("size", "size"),
            Column("samples", "samples"),
            Column("parameters", "parameters"),
            Column("error", "relative error", better="lower"),
        ],
        caption="Recovering a hidden Monarch matrix (synthetic): relative error, mean ± standard error over seeds",
        group="size",
    )
    settings = sorted({(r.config["size"], r.config["samples"], r.config["model"]) for r in runs})
    for size, samples, model in settings:
        same = [
            r
            for r in runs
            if (r.config["size"], r.config["samples"], r.config["model"]) == (size, samples, model)
        ]
        parameters = sum(p.numel() for p in build_model(model, size).parameters())
        score = Score.of(r.manifest["best"]["error"] for r in same)
        result.rows.append(
            {"model": model, "size": size, "samples": samples, "parameters": parameters, "error": score}
        )
    if latex:
        console().print(result.latex(), markup=False)
    else:
        result.print()
    paths = result.save(runs_dir() / "demo", "table")
    with plot.style():
        figure, ((axes,),) = plot.figure(width=4.5, height=3)
        for run in runs:
            rows = run.metrics()
            label = f"{run.config['model']}, size {run.config['size']}, seed {run.config['seed']}"
            axes.semilogy([row["epoch"] for row in rows], [row["error"] for row in rows], label=label)
        axes.set(
            xlabel="epoch", ylabel="relative error on new vectors", title="Recovering a hidden Monarch matrix"
        )
        axes.legend()
        paths.append(plot.save(figure, runs_dir() / "demo" / "learning.png"))
    say("wrote " + ", ".join(str(path) for path in paths))
    return result
