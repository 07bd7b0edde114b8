"""What learning a transform should bring where fields are not periodic, and whether it did."""

from collections.abc import Sequence

from lab.table import Cell, Column, Table
from pde.evaluate import Evaluation


def targets_table(evaluations: Sequence[Evaluation]) -> Table | None:
    """Errors of operators that learn over those of operators that do not, beside what was to be reached.

    None where no such pair was trained, and for the periodic flow, whose ratios have a table by viscosity.
    """
    problem = evaluations[0].problem
    pairs: list[tuple[tuple[str, str], tuple[str, str], float]] = []
    if not problem.sphere:
        pairs.append((("mno", "dft"), ("fno", "dft"), 0.75))
    pairs += [(("mno", start), ("fno", start), 1.0) for start in problem.transforms]
    if problem.sphere:
        pairs.append((("mno", "sht"), ("sfno", ""), 1.0))
    table = Table(
        [
            Column("ratio", "error divided by that of another model"),
            Column("value", problem.title, digits=2),
            Column("target", "to reach"),
            Column("reached", "reached"),
        ]
    )
    for above, below, target in pairs if problem.transforms else []:
        errors = [_mean_error(evaluations, *model) for model in (above, below)]
        if errors[0] is None or errors[1] is None:
            continue
        value = errors[0] / errors[1]
        row: dict[str, Cell] = {
            "ratio": f"{_named(*above)} / {_named(*below)}",
            "value": value,
            "target": "below 1" if target == 1.0 else f"{target:g}",
            "reached": "yes" if value < 1.0 and value <= target else "no",
        }
        table.rows.append(row)
    return table if table.rows else None


def _mean_error(evaluations: Sequence[Evaluation], model: str, start: str) -> float | None:
    """The error of a plain operator with this transform: over its test samples, then over its seeds."""
    values = [
        float(e.errors.mean())
        for e in evaluations
        if (e.model, e.options.get("start", "")) == (model, start) and not any(e.options.get("padding", ()))
    ]
    return sum(values) / len(values) if values else None


def _named(model: str, start: str) -> str:
    return f"{model}, start {start}" if start else model
