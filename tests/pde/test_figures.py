"""What figures call the rows, and which runs they show."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from data.fields.generator import generate
from data.navier_stokes.config import GenerateConfig
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


def test_runs_on_other_grids_and_horizons_share_curves_but_no_pictures(train_flow, evaluation, workplace):
    """Fewer test samples, fewer frames and fewer points: what is drawn together has the same test samples."""
    size = {"num_samples": 8, "final_time": 15, "grid": 32, "resolution": 32}
    fine = generate(GenerateConfig(nu=1e-2, precision="float32", out=Path("fine.h5"), workers=1, **size))
    small = ["--width", "4", "--modes", "3"]
    assert train_flow("--model", "lfno", *small, "--num-test", "4", "--name", "a") == 0
    assert train_flow("--model", "fno", *small, "--name", "b") == 0
    assert train_flow("--model", "ffno", *small, "--data", str(fine), "--name", "c") == 0
    assert evaluation() == 0
    results = workplace / "runs" / "pde" / "results"
    assert "Rows that were tested on other samples" in (results / "report.html").read_text()
    scored = score_runs(finished_runs(TrainConfig), EvalConfig(), workplace / "scores")
    assert [result.row.model for result in figures.comparable(scored, "nu1e-2")] == ["lfno"]


def test_pictures_show_the_forecasts_that_were_scored(train_flow, workplace):
    assert train_flow("--model", "fno", "--width", "4", "--modes", "3", "--name", "a") == 0
    runs, config = finished_runs(TrainConfig), EvalConfig(average_symmetries=4)
    (result,) = score_runs(runs, config, workplace / "scores")
    truth, made = (movie.astype(float) for movie in figures.movies([result], 0))
    shown = np.linalg.norm(made - truth) / np.linalg.norm(truth)
    assert shown == pytest.approx(result.scores[0].errors[0], rel=1e-4)
