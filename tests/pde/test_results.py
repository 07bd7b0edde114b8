"""The table of results: what is averaged, what stays apart, what is bold."""

from typing import Any

import pytest
import torch
from lab.gather import FinishedRun
from pde.evaluate import Evaluation, _variant
from pde.results import ratios_table, results_table, samples_table
from pde.targets import targets_table

from data.fields.geometry import Box
from data.fields.layout import Grid
from lab.table import Score
from pde.config import TrainConfig
from pde.problems import PROBLEMS


def evaluation(
    model: str, errors: list[float], seed: int = 0, nu: float = 1e-3, variant: str = ""
) -> Evaluation:
    frames = torch.zeros(len(errors), 4, 4, 3, 1)
    return Evaluation(
        problem=PROBLEMS["navier-stokes"],
        grid=Grid.of(Box(), 4),
        fields=("vorticity",),
        name=f"{model}-{seed}",
        model=model,
        variant=variant,
        options={},
        nu=nu,
        seed=seed,
        parameters=10,
        steps=300,
        minutes=2.0,
        seconds_per_pass=2.0,
        errors=torch.tensor(errors),
        per_frame=torch.zeros(len(errors), 3),
        truth=frames,
        prediction=frames,
    )


def test_seeds_are_averaged_before_the_standard_error() -> None:
    table = results_table([evaluation("mno", [0.1, 0.3]), evaluation("mno", [0.3, 0.5], seed=1)])
    (row,) = table.rows
    cell = row["nu 0.001"]
    assert isinstance(cell, Score)
    assert cell.mean == pytest.approx(0.3)
    assert cell.error == pytest.approx(0.1)  # over the two samples 0.2 and 0.4
    assert row["seeds"] == 2


def test_variants_of_a_model_are_rows_of_their_own() -> None:
    table = results_table([evaluation("mno", [0.1]), evaluation("mno", [0.3], variant="groups 1")])
    assert [row["model"] for row in table.rows] == ["mno", "mno, groups 1"]


def test_ratio_is_of_the_mean_errors() -> None:
    table = ratios_table([evaluation("mno", [0.1, 0.2]), evaluation("fno", [0.2, 0.4])])
    assert table is not None
    assert table.rows[0]["ratio"] == "mno / fno"
    cell = table.rows[0]["nu 0.001"]
    assert isinstance(cell, Score)
    assert (cell.mean, cell.error) == (pytest.approx(0.5), None)
    assert ratios_table([evaluation("fno", [0.2])]) is None


def test_spread_of_a_ratio_is_that_over_seeds() -> None:
    mno = [evaluation("mno", [error], seed) for seed, error in enumerate((0.1, 0.3))]
    fno = [evaluation("fno", [error], seed) for seed, error in enumerate((0.4, 0.4))]
    table = ratios_table(mno + fno)
    assert table is not None
    cell = table.rows[0]["nu 0.001"]
    assert isinstance(cell, Score)
    assert cell.mean == pytest.approx(0.5)
    assert cell.error == pytest.approx(0.1 / 0.4)  # the seeds of mno differ by 0.2, those of fno not at all


def test_every_error_is_kept_by_run_and_sample() -> None:
    rows = samples_table([evaluation("mno", [0.1, 0.3], seed=2), evaluation("fno", [0.2])]).rows
    assert [(row["run"], row["sample"], row["error"]) for row in rows] == [
        ("mno-2", 0, pytest.approx(0.1)),
        ("mno-2", 1, pytest.approx(0.3)),
        ("fno-0", 0, pytest.approx(0.2)),
    ]


def test_variant_names_only_what_differs() -> None:
    def run(model: Any = "mno", **options: Any) -> FinishedRun:
        config = TrainConfig(model=model, num_train=40, **options)
        return FinishedRun(None, vars(config), {})  # type: ignore[arg-type]

    plain, slow = run(), run(transform_lr=0.1)
    assert _variant(plain, [plain, slow]) == ""
    assert _variant(slow, [plain, slow]) == "transform lr 0.1"
    assert _variant(slow, [slow]) == ""
    fixed, preset = run("fno"), run("fno", transform_lr=0.1)
    assert _variant(preset, [fixed, preset]) == ""  # it has no transforms that learn
    sines = run("lfno", problem="darcy", start="dst")
    assert _variant(sines, [sines]) == "start dst"  # where the transform is the question, it is always named


def test_epochs_that_follow_from_a_budget_are_no_variant() -> None:
    def run(**options: Any) -> FinishedRun:
        return FinishedRun(None, vars(TrainConfig(model="fno", **options)), {})  # type: ignore[arg-type]

    quick, slow = run(minutes=1.0, epochs=4, epoch_steps=7), run(minutes=1.0, epochs=6, epoch_steps=9)
    long = run(epochs=8)
    assert _variant(quick, [quick, slow]) == _variant(slow, [quick, slow]) == ""
    assert _variant(long, [quick, long]) == "epochs 8"


def test_targets_of_the_flow_are_by_viscosity_against_the_best_baseline_and_the_twin() -> None:
    made = [evaluation("mno", [0.1]), evaluation("mno", [0.3], seed=1), evaluation("fno", [0.4])]
    made += [evaluation("lfno", [0.1]), evaluation("ffno", [0.25])]
    made += [evaluation("mno", [0.01], variant="groups 5")]
    made += [evaluation("fno", [0.4], nu=1e-5)]
    table = targets_table(made)
    assert table is not None
    rows = {row["ratio"]: row for row in table.rows}
    assert rows["fno: to reach"]["nu 0.001"] == 0.59
    measured = {
        "fno: measured": 0.5,
        "the best baseline: measured": 0.8,  # ffno's
        "lfno, its twin with fixed transforms: measured": 2.0,
    }
    for name, value in measured.items():
        cell = rows[name]["nu 0.001"]
        assert isinstance(cell, Score)
        assert cell.mean == pytest.approx(value)
    assert rows["fno: measured"].get("nu 1e-05") is None
    assert targets_table([evaluation("fno", [0.4])]) is None
