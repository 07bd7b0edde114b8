"""The tables: what is averaged, what stays apart, and what a ratio is."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from data.fields.geometry import Geometry, Sphere
from lab.runs import FinishedRun, Row
from lab.table import Score, Table
from pde.models import MODELS
from pde.problems import PROBLEMS
from pde.scores import Result, Scores
from pde.tables import horizon_table, places_table, ratios_table, results_table, samples_table


def result(
    label: str,
    *errors: list[float],
    nu: float = 1e-3,
    problem: str = "navier-stokes",
    regions: tuple[float | None, ...] = (),
    data: str = "same",
) -> Result:
    """A row with the errors of one run per seed, and of each the error by region."""
    model = label.split(",")[0]
    assert model in MODELS
    about = PROBLEMS[problem]
    geometry: Geometry = about.geometry
    runs = [
        FinishedRun(Path(f"{model}-{seed}"), {"model": model, "seed": seed}, {})
        for seed in range(len(errors))
    ]
    scores = [
        Scores(each, [], [], [], dict.fromkeys(geometry.places, region), [], [])
        for each, region in zip(errors, regions or (None,) * len(errors), strict=True)
    ]
    case = nu if about.case else None
    test = cast(
        Any, SimpleNamespace(parameters={"nu": nu}, geometry=geometry, describe=lambda: {"fingerprint": data})
    )
    return Result(
        Row(label, tuple(runs)), about, about.case_name(case), about.case_title(case), 10, tuple(scores), test
    )


def cell(table: Table | None, row: int, column: str) -> Score:
    assert table is not None
    found = table.rows[row][column]
    assert isinstance(found, Score)
    return found


def test_seeds_are_averaged_before_the_standard_error():
    table = results_table([result("mno", [0.1, 0.3], [0.3, 0.5])])
    found = cell(table, 0, "nu1e-3")
    assert found.mean == pytest.approx(0.3)
    assert found.error == pytest.approx(0.1)  # over the two samples 0.2 and 0.4
    assert table.rows[0]["seeds"] == 2


def test_rows_are_those_of_the_labels_and_columns_the_cases():
    made = [result("mno", [0.1]), result("mno, groups 5", [0.3]), result("mno", [0.2], nu=1e-5)]
    table = results_table(made)
    assert [row["model"] for row in table.rows] == ["mno", "mno, groups 5"]
    assert [column.title for column in table.columns if column.key.startswith("nu")] == [
        "nu = 0.001",
        "nu = 1e-05",
    ]
    assert table.rows[1].get("nu1e-5") is None


def test_ratio_is_of_the_mean_errors():
    table = ratios_table([result("mno", [0.1, 0.2]), result("fno", [0.2, 0.4])])
    assert table is not None
    assert table.rows[0]["ratio"] == "mno / fno"
    found = cell(table, 0, "nu1e-3")
    assert (found.mean, found.error) == (pytest.approx(0.5), None)
    assert ratios_table([result("fno", [0.2])]) is None
    assert ratios_table([result("mno", [0.2])]) is None


def test_spread_of_a_ratio_is_that_over_seeds():
    found = cell(ratios_table([result("mno", [0.1], [0.3]), result("fno", [0.4], [0.4])]), 0, "nu1e-3")
    assert found.mean == pytest.approx(0.5)
    assert found.error == pytest.approx(0.1 / 0.4)  # the seeds of mno differ by 0.2, those of fno not at all


def test_relative_errors_of_a_ratio_add_in_squares():
    found = cell(ratios_table([result("mno", [0.1], [0.26]), result("fno", [0.2], [0.4])]), 0, "nu1e-3")
    assert found.mean == pytest.approx(0.18 / 0.3)
    assert found.error == pytest.approx(0.6 * ((0.08 / 0.18) ** 2 + (0.1 / 0.3) ** 2) ** 0.5)


def test_every_row_of_ours_is_compared_with_every_other_model():
    darcy = [
        ("mno, start dst", 0.1),
        ("mno", 0.2),
        ("lfno, start dst", 0.2),
        ("fno", 0.4),
        ("fno, padding 0.125", 0.5),
    ]
    table = ratios_table([result(label, [error], problem="darcy") for label, error in darcy])
    assert table is not None
    ratios = {str(row["ratio"]): cell(table, i, "darcy").mean for i, row in enumerate(table.rows)}
    assert len(ratios) == 2 * 3
    assert ratios["mno, start dst / lfno, start dst"] == pytest.approx(0.5)
    assert ratios["mno / fno, padding 0.125"] == pytest.approx(0.4)


def test_the_ratio_of_the_paper_stands_beside_ours():
    made = [
        result("mno", [0.1]),
        result("fno", [0.4]),
        result("mno", [0.2], nu=1e-5),
        result("fno", [0.4], nu=1e-5),
    ]
    table = ratios_table(made)
    assert table is not None
    last = table.rows[-1]
    assert last["ratio"] == "mno / fno in the paper"
    assert (last["nu1e-3"], last["nu1e-5"]) == (0.59, 0.88)
    elsewhere = ratios_table([result("mno", [0.1], nu=1e-2), result("fno", [0.4], nu=1e-2)])
    assert elsewhere is not None
    assert len(elsewhere.rows) == 1


def test_every_error_is_kept_by_run_and_sample():
    rows = samples_table([result("mno", [0.1, 0.3], [0.5, 0.6]), result("fno", [0.2])]).rows
    assert [(row["run"], row["seed"], row["sample"], row["error"]) for row in rows] == [
        ("mno-0", 0, 0, 0.1),
        ("mno-0", 0, 1, 0.3),
        ("mno-1", 1, 0, 0.5),
        ("mno-1", 1, 1, 0.6),
        ("fno-0", 0, 0, 0.2),
    ]


def test_places_are_averaged_over_seeds():
    table = places_table([result("fno", [0.1], [0.1], problem="shallow-water", regions=(1.0, 3.0))])
    for name in Sphere().places:
        found = cell(table, 0, name)
        assert (found.mean, found.count) == (2.0, 2)


def test_a_region_without_points_has_no_error_and_a_periodic_box_no_regions():
    table = places_table([result("fno", [0.1], problem="darcy", regions=(None,))])
    assert table is not None
    assert table.rows[0]["within 1/16 of a wall"] is None
    assert places_table([result("fno", [0.1])]) is None


def test_places_are_those_of_the_rows_that_have_any():
    """Of one file, whose boundary was told in two ways."""
    between_walls = result("lfno", [0.1], problem="darcy", regions=(0.3,))
    for both in ([between_walls, result("fno", [0.1])], [result("fno", [0.1]), between_walls]):
        table = places_table(both)
        assert table is not None
        assert [row["model"] for row in table.rows] == ["lfno"]


def test_horizons_are_steps_before_the_correlation_falls():
    made = result("mno", [0.1, 0.2], [0.1, 0.2])
    correlations = [[[0.99, 0.96, 0.9, 0.5], [0.99, 0.9, 0.9, 0.9]], [[0.99, 0.99, 0.99, 0.99]] * 2]
    scores = [
        replace(each, correlations=values, energy=[1.0, 3.0], true_energy=[1.0, 2.0])
        for each, values in zip(made.scores, correlations, strict=True)
    ]
    table = horizon_table([replace(made, scores=tuple(scores))])
    assert cell(table, 0, "correlation 0.95").mean == pytest.approx(
        (3 + 2.5) / 2
    )  # samples: 2 and 4, 1 and 4
    assert cell(table, 0, "correlation 0.8").mean == pytest.approx((3.5 + 4) / 2)  # samples: 3 and 4, 4 and 4
    assert table.rows[0]["energy"] == pytest.approx(1.5)
    assert table.rows[0]["steps"] == 4
    assert horizon_table([made]) is None


def test_a_ratio_has_the_p_of_the_same_samples_paired():
    errors = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    worse = [2 * error for error in errors]
    table = ratios_table([result("mno", errors), result("fno", worse)])
    assert table is not None
    assert table.rows[0]["p_nu1e-3"] == "0.031"  # the least that six pairs can give, 2 / 2^6
    apart = ratios_table([result("mno", errors), result("fno", worse, data="other")])
    assert apart is not None
    assert apart.rows[0]["p_nu1e-3"] is None
