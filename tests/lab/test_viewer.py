"""Pictures whose numbers leave nothing to show."""

import numpy as np

from lab.report import Stack, Viewer


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
