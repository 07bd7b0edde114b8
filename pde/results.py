"""The table of results: models by viscosity."""

from collections.abc import Sequence

import torch

from lab.table import Cell, Column, Score, Table
from pde.evaluate import Evaluation

ORDER = ("mno", "fno", "ffno", "unet", "tfnet", "resnet")


def results_table(evaluations: Sequence[Evaluation]) -> Table:
    """One row per model (and number of parameters), one column per viscosity; mean and standard error.

    The error is over test samples; with several seeds, each sample counts with its mean over the seeds.
    """
    nus = sorted({evaluation.nu for evaluation in evaluations}, reverse=True)
    columns = [Column("model", "model"), Column("parameters", "parameters")]
    columns += [Column(f"nu {nu:g}", f"nu = {nu:g}", better="lower") for nu in nus]
    columns += [Column("seeds", "seeds"), Column("epoch", "seconds per epoch", digits=1)]
    caption = "Relative L2 error of the forecast, mean ± standard error over test samples"
    table = Table(columns, caption=caption)
    kinds = sorted({(ORDER.index(e.model), e.model, e.parameters) for e in evaluations})
    for _, model, parameters in kinds:
        same = [e for e in evaluations if (e.model, e.parameters) == (model, parameters)]
        paces = [e.seconds_per_epoch for e in same if e.seconds_per_epoch is not None]
        row: dict[str, Cell] = {
            "model": model,
            "parameters": parameters,
            "seeds": len({e.seed for e in same}),
            "epoch": sum(paces) / len(paces) if paces else None,
        }
        for nu in nus:
            errors = [e.errors for e in same if e.nu == nu]
            row[f"nu {nu:g}"] = Score.of(torch.stack(errors).mean(0).tolist()) if errors else None
        table.rows.append(row)
    return table


def ratios_table(evaluations: Sequence[Evaluation]) -> Table | None:
    """The error of mno divided by that of each other model, by viscosity; None without mno."""
    nus = sorted({evaluation.nu for evaluation in evaluations}, reverse=True)
    others = [name for name in ORDER[1:] if any(e.model == name for e in evaluations)]
    if not others or not any(e.model == "mno" for e in evaluations):
        return None
    columns = [Column("against", "error of mno divided by that of")]
    columns += [Column(f"nu {nu:g}", f"nu = {nu:g}", digits=2) for nu in nus]
    table = Table(columns)

    def mean(model: str, nu: float) -> float | None:
        values = [float(e.errors.mean()) for e in evaluations if (e.model, e.nu) == (model, nu)]
        return sum(values) / len(values) if values else None

    for other in others:
        row: dict[str, Cell] = {"against": other}
        for nu in nus:
            mine, its = mean("mno", nu), mean(other, nu)
            row[f"nu {nu:g}"] = None if mine is None or its is None else mine / its
        table.rows.append(row)
    return table
