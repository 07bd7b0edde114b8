"""What learning a transform should bring, and whether it did."""

from collections.abc import Sequence

from lab.table import Cell, Column, Score, Table
from pde.evaluate import Evaluation
from pde.results import cases, of_seeds, ratio

# The error of mno over that of fno by viscosity.
PAPER = {1e-3: 0.59, 1e-4: 0.81, 1e-5: 0.88}
TO_REACH = {1e-3: 0.59, 1e-4: 0.80, 1e-5: 0.85}


def targets_table(evaluations: Sequence[Evaluation]) -> Table | None:
    """Errors of operators that learn over those of operators that do not, beside what was to be reached.

    None where no such pair was trained.
    """
    table = _of_walls(evaluations) if evaluations[0].grid.geometry.transforms else _of_flow(evaluations)
    return table if table.rows else None


def _of_flow(evaluations: Sequence[Evaluation]) -> Table:
    """By viscosity: `mno` over `fno`, the best baseline and its own twin. Variants of a model do not take part."""
    titles = cases(evaluations)
    models = sorted({e.model for e in evaluations})
    names = (
        "fno: the paper's",
        "fno: to reach",
        "fno: measured",
        "the best baseline: to reach",
        "the best baseline: measured",
        "lfno, its twin with fixed transforms: measured",
    )
    rows: dict[str, dict[str, Cell]] = {name: {"ratio": name} for name in names}
    for case, nu in {e.case: e.nu for e in evaluations}.items():
        # A variant's label is longer than its model's name, so these are the models as they are.
        errors = {m: error for m in models if (error := of_seeds(evaluations, m, case)) is not None}
        if nu is None or not {"mno", "fno"} <= errors.keys():
            continue
        ratios = {m: ratio(errors["mno"], error) for m, error in errors.items()}
        best = min(errors.keys() - {"mno", "lfno"}, key=lambda model: errors[model].mean)
        cells = (PAPER.get(nu), TO_REACH.get(nu), ratios["fno"], "below 1", ratios[best], ratios.get("lfno"))
        for name, cell in zip(names, cells, strict=True):
            if cell is not None:
                rows[name][case] = cell
    columns = [Column(case, title, digits=2) for case, title in titles.items()]
    table = Table([Column("ratio", "error of mno divided by that of"), *columns])
    table.rows += [row for row in rows.values() if len(row) > 1]
    return table


def _of_walls(evaluations: Sequence[Evaluation]) -> Table:
    problem, transforms = evaluations[0].problem, evaluations[0].grid.geometry.transforms
    fno, swapped, right = ("fno", "dft"), ("mno", "dft", "fno"), transforms[0]
    sphere = right == "sht"
    pairs: list[tuple[tuple[str, ...], tuple[str, ...], float]] = []
    if not sphere:
        pairs += [(("mno", "dft"), fno, 0.75), (swapped, fno, 0.75)]
    pairs += [(("mno", start), ("lfno", start), 1.0) for start in ("dft", *transforms)]
    if sphere:
        pairs += [(("mno", right), ("sfno",), 1.0), (swapped, fno, 1.0)]
    table = Table(
        [
            Column("ratio", "error divided by that of another model"),
            Column("value", problem.title, digits=2),
            Column("target", "to reach"),
            Column("reached", "reached"),
        ]
    )
    for above, below, target in pairs:
        value = ratio(_plain(evaluations, *above), _plain(evaluations, *below))
        if value is None:
            continue
        row: dict[str, Cell] = {
            "ratio": f"{_named(*above)} / {_named(*below)}",
            "value": value,
            "target": "below 1" if target == 1.0 else f"{target:g}",
            "reached": "yes" if value.mean < 1.0 and value.mean <= target else "no",
        }
        table.rows.append(row)
    return table


def _plain(evaluations: Sequence[Evaluation], model: str, start: str = "", twin: str = "") -> Score | None:
    """The error of an operator with this transform and architecture, without padding, over its seeds."""

    def of(e: Evaluation) -> tuple[str, str, str]:
        twin = e.options.get("twin") or ""
        return e.model, e.options.get("start", ""), "" if twin == "latent" else twin

    means = [
        float(e.errors.mean())
        for e in evaluations
        if of(e) == (model, start, twin) and not any(e.options.get("padding", ()))
    ]
    return Score.of(means) if means else None


def _named(model: str, start: str = "", twin: str = "") -> str:
    twin = f", twin {twin}" if twin else ""
    return f"{model}{twin}, start {start}" if start else model
