"""Tables from scores."""

import math
from pathlib import Path

import pytest

from lab.runs import FinishedRun
from lab.table import Score
from mri.metrics import METRICS
from mri.report import _runs
from mri.scores import Result
from mri.tables import paired_table, results_tables, seeds_table
from mri.volumes import _words


def rows(*values: float) -> list[dict]:
    return [{"scan": f"s{k}", "echo": 1, **dict.fromkeys(METRICS, value)} for k, value in enumerate(values)]


def test_spread_over_seeds_is_that_of_the_means_over_scans():
    seeds = {0: rows(30.0, 40.0), 1: rows(32.0, 42.0), 2: rows(28.0, 38.0)}
    one = Result("msense", "msense", 2.0, 1, seeds)
    single = Result("unet", "unet", 2.0, 1, {0: rows(20.0)})
    table = seeds_table([single, one], "test data")
    assert [row["method"] for row in table.rows] == ["msense"]
    score = table.rows[0]["psnr_1"]
    assert isinstance(score, Score)
    assert (score.mean, score.error) == (pytest.approx(35.0), pytest.approx(2.0))
    assert table.rows[0]["seeds"] == "0, 1, 2"


def test_one_seed_has_no_table_of_seeds():
    assert seeds_table([Result("unet", "unet", 2.0, 1, {0: rows(20.0)})], "").rows == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_diverged_seed_takes_nobody_elses_table_away(value):
    sense = Result("sense", "sense", 2.0, 0, {0: rows(30.0, 31.0, 33.0)})
    diverged = Result("unet", "unet", 2.0, 1, {0: rows(value, 30.0, 31.0), 1: rows(29.0, 30.0, 31.0)})
    tables = results_tables([sense, diverged], "test data", against=["sense"])
    assert set(tables) == {"acceleration", "against_sense", "seeds"}
    assert "unet" in tables["acceleration"].note()
    assert "sense" not in tables["acceleration"].note()
    assert "31.33" in tables["acceleration"].csv()
    assert "nan" in tables["seeds"].markdown()


def test_the_page_has_the_runs_of_every_acceleration_each_once():
    def run(name: str, acc: float, mixed: list[float] | None = None) -> FinishedRun:
        return FinishedRun(Path(name), {"acc": acc, "mixed_acc": mixed, "seed": 0}, {})

    mixed = run("mcs", 2.0, [2.0, 4.0])
    results = [
        Result(model, model, acc, 1, {}, (trained,))
        for acc in (2.0, 4.0)
        for model, trained in (("msense", run(f"msense{acc:g}", acc)), ("mcs", mixed))
    ]
    found = {label: [run.name for run in runs] for label, runs in _runs(results).items()}
    assert found == {
        "mSENSE, N = 1, acceleration 2": ["msense2"],
        "mSENSE, N = 1, acceleration 4": ["msense4"],
        "MCS, N = 1, acceleration 2, 4": ["mcs"],
    }
    assert list(_runs(results[:1])) == ["mSENSE, N = 1"]


def test_the_name_of_a_volume_leads_nowhere_else():
    result = Result("msense, data head/neck 1a2b", "msense", 2.5, 3, {})
    assert _words(result) == "msense-data-head-neck-1a2b-acc2.5-n3"


def test_differences_are_of_the_scans_that_both_know():
    sense = Result("sense", "sense", 2.0, 0, {0: rows(30.0, 31.0, 33.0)})
    own = Result(
        "mcs", "mcs", 2.0, 0, {0: rows(30.0, 34.0)[1:]}
    )  # --supervision zero-shot on the second scan
    other = Result("unet", "unet", 2.0, 1, {0: rows(29.0)})
    (row,) = paired_table([sense, own, other], "mcs", "test data").rows
    assert (row["method"], row["psnr_1"]) == ("sense", Score(-3.0))


def test_differences_come_with_the_chance_that_they_are_none():
    from scipy.stats import wilcoxon

    theirs, mine = (30.0, 31.0, 33.0, 36.0, 40.0), (31.0, 33.0, 36.0, 40.0, 45.0)
    sense = Result("sense", "sense", 2.0, 0, {0: rows(*theirs)})
    table = paired_table([sense, Result("unet", "unet", 2.0, 1, {0: rows(*mine)})], "sense", "test data")
    assert table.rows[0]["p_1"] == f"{wilcoxon(mine, theirs).pvalue:.2g}"
