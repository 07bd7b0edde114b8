"""A report whose numbers are missing, or not finite."""

import numpy as np

from lab.report import Page, Stack, Viewer, write
from lab.table import Column, Table


def test_a_map_without_a_number_is_blank():
    blank = np.full((1, 2, 3), np.nan)
    viewer = Viewer("T2", "map", "slice", [Stack({}, blank, {"a": blank})])
    assert viewer.described()["stacks"][0]["range"] == (0.0, 0.25)
    assert len(set(viewer.pictures())) == 1


def test_the_range_is_that_of_the_finite_numbers():
    truth = np.array([[[0.0, np.nan, 4.0, np.inf]]])
    assert Viewer("T2", "map", "slice", [Stack({}, truth, {})]).described()["stacks"][0]["range"] == (
        0.0,
        5.0,
    )


def test_a_model_that_diverged_is_named_beside_best_and_worst(tmp_path):
    table = Table([Column("model"), Column("error", better="lower")], caption="Flows")
    for name, error in (("a", 0.1), ("b", 0.3), ("c", np.nan), ("d", None)):
        table.add(name, error)
    page = write(Page("T", "a, b, c, d", "synthetic", [table]), tmp_path / "report.html").read_text()
    assert "Flows, error: best a (0.1000), worst b (0.3000); diverged: c." in page
