"""What figures call the rows, and which runs they show."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lab.errors import UserError
from lab.runs import FinishedRun, Row, finished_runs
from pde import figures
from pde.config import EvalConfig, TrainConfig
from pde.problems import PROBLEMS
from pde.scores import Result, score_runs


@pytest.fixture
def results(train_flow, workplace) -> list[Result]:
    assert train_flow("--model", "fno", "--width", "4", "--modes", "3", "--name", "a") == 0
    return score_runs(finished_runs(TrainConfig), EvalConfig(), workplace / "scores")


def test_rows_are_called_by_the_title_of_their_model():
    anything: Any = None
    run = FinishedRun(Path("a"), {"model": "lfno", "seed": 0}, {})
    row = Row("lfno, start dst", (run,))
    result = Result(row, PROBLEMS["darcy"], "darcy", "Darcy", 1, (), anything)
    assert figures.shown_label(result) == "latent FNO, start dst"


def test_an_animation_has_a_frame_for_each_step_and_a_tile_for_each_model(results, tmp_path):
    with Image.open(figures.animation(results, 1, tmp_path / "a.gif")) as movie:
        assert movie.n_frames == 3
        assert movie.size == (2 * 128, 128)  # the truth and one model


def test_the_truth_is_drawn_x_to_the_right_and_y_upwards(results):
    truth = figures.movies(results, 0)[0]
    field = results[0].test.one(0).load()[0, ..., -1, 0].numpy()
    assert np.array_equal(truth[-1], field.T[::-1])


def test_a_sample_that_is_not_there_is_refused(results, tmp_path):
    with pytest.raises(UserError, match="there are 2 test samples, from 0; not 2"):
        figures.panels(results, 2, tmp_path / "a.png")
