"""A trained model in use: its scaling, its rollout, other grids, and the way through a weights file."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lab import weights
from lab.errors import UserError
from pde.metrics import relative_error
from pde.models import build
from pde.models.parts.model import Model
from pde.predictor import Forecaster, OneShot, load, moved, spread_elements
from pde.problems import PROBLEMS


class Same(Model):
    """A network whose answer is known: what it sees."""

    def __init__(self) -> None:
        super().__init__(1, 4)

    def forward(self, frames: Tensor) -> Tensor:
        return frames


class Sum(Same):
    """Another: the sum of the frames it sees."""

    def forward(self, frames: Tensor) -> Tensor:
        return frames.sum(-1, keepdim=True)


def test_rollout_feeds_its_own_frames_back() -> None:
    forecaster = Forecaster(Sum(), in_frames=2, residual=False)
    first = torch.tensor([1.0, 1.0])[:, None].expand(1, 4, 4, 2, 1)
    assert forecaster.rollout(first, 5)[0, 0, 0, :, 0].tolist() == [2.0, 3.0, 5.0, 8.0, 13.0]


def test_forecast_starts_from_the_last_frame_given() -> None:
    forecaster = Forecaster(Sum(), in_frames=1, residual=False)
    given = torch.arange(10.0)[:, None].expand(1, 4, 4, 10, 1)
    assert forecaster.predict(given, 3)[0, 0, 0, :, 0].tolist() == [9.0, 9.0, 9.0]


@pytest.mark.parametrize(
    ("shape", "got"),
    [
        ((2, 4, 4, 1, 2), "with 3 frames or more, constants behind the fields; got the shape"),
        ((2, 4, 4, 3, 1), r"takes \(batch, row, column, frame, 2\) with"),
        ((4, 4, 3, 2), r"got the shape \(4, 4, 3, 2\)"),
    ],
)
def test_other_shapes_than_those_of_the_model_are_refused(shape: tuple[int, ...], got: str) -> None:
    forecaster = Forecaster(Same(), in_frames=3, residual=True, fields=1, constants=1)
    with pytest.raises(UserError, match=got):
        forecaster.predict(torch.zeros(shape), 2)


@pytest.mark.parametrize("fields", [1, 3])
def test_normalisation_is_undone(fields: int) -> None:
    trajectories = 5 + torch.tensor([3.0, 100.0, 0.1])[:fields] * torch.randn(6, 4, 4, 12, fields)
    forecaster = Forecaster(Same(), in_frames=1, residual=False, fields=fields)
    forecaster.normalise_like(trajectories)
    frame = trajectories[..., :1, :]
    assert torch.allclose(forecaster(frame), frame, atol=1e-5)


def test_each_field_counts_alike() -> None:
    trajectories = 5 + torch.tensor([1e3, 1e-3]) * torch.randn(6, 8, 8, 12, 2)
    forecaster = Forecaster(Same(), in_frames=1, residual=False, fields=2)
    forecaster.normalise_like(trajectories)
    errors = []
    for field in range(2):
        wrong = trajectories.clone()
        wrong[..., field] += 0.1 * trajectories[..., field].std()
        both = forecaster.measured(wrong), forecaster.measured(trajectories)
        errors.append(float(relative_error(*both).mean()))
    assert errors[0] == pytest.approx(0.1 / 2**0.5, rel=0.01)
    assert errors[0] == pytest.approx(errors[1], rel=0.05)


def test_residual_adds_to_the_last_frame() -> None:
    forecaster = Forecaster(Same(), in_frames=1, residual=True)
    forecaster.change.fill_(0.5)
    frame = torch.randn(2, 4, 4, 1, 1)
    assert torch.allclose(forecaster(frame), 1.5 * frame)


def test_one_shot_scales_input_and_answer_apart() -> None:
    given = 12 + 3 * torch.randn(6, 4, 4, 1, 1)
    predictor = OneShot(Same())
    predictor.normalise_like(given, 0.5 + 0.01 * given)  # the answer is the input, scaled
    assert torch.allclose(predictor.predict(given, 1), 0.5 + 0.01 * given, atol=1e-5)


def test_fourier_operator_moves_to_a_finer_grid() -> None:
    forecaster = Forecaster(build("mno", 1, 16, twin="ffno", width=5, modes=3), 1, residual=True).eval()
    t = torch.arange(32) / 32 * 2 * torch.pi
    field = (torch.sin(t)[:, None] * torch.cos(2 * t))[None, ..., None, None]
    coarse = forecaster(field[:, ::2, ::2])
    fine = forecaster.at_resolution(32)(field)
    # The coordinates' last point and the feed-forward's ReLU depend on the grid a little.
    assert (fine[:, ::2, ::2] - coarse).norm() < 0.05 * coarse.norm()


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("resnet", {"width": 4}, "kernel"),
        ("mno", {"twin": "fno", "form": "grid", "width": 5, "modes": 3}, "row of its grid"),
        ("mno", {"start": "dct", "width": 5, "modes": 3}, "cosines"),
    ],
)
def test_other_models_say_why_they_stay(name: str, options: dict[str, Any], reason: str) -> None:
    forecaster = Forecaster(build(name, 1, 16, **options), 1, residual=True)
    with pytest.raises(UserError, match=reason):
        forecaster.at_resolution(32)


def test_a_header_of_an_older_version_is_refused(tmp_path) -> None:
    weights.save(tmp_path / "w.safetensors", nn.Linear(2, 2), {"app": "pde", "model": "fno"})
    with pytest.raises(UserError, match=r"no entry 'geometry'.*train again"):
        load(tmp_path / "w.safetensors")


def test_weights_of_another_application_are_refused(tmp_path) -> None:
    weights.save(tmp_path / "weights.safetensors", nn.Linear(2, 2), {"app": "mri"})
    with pytest.raises(UserError, match="a model of mri, not of pde"):
        load(tmp_path / "weights.safetensors")


class Neighbours(Same):
    """Knows the symmetries of the Darcy problem: a point and the four around it count alike on a torus."""

    def forward(self, frames: Tensor) -> Tensor:
        return sum((frames.roll(shift, axis) for axis in (1, 2) for shift in (1, -1)), frames.square())


class OneSided(Same):
    """Knows none."""

    def forward(self, frames: Tensor) -> Tensor:
        return 0.5 * frames.roll(1, 1) + frames.roll(1, 2).square()


@pytest.mark.parametrize(
    ("problem", "images"), [("darcy", 8), ("navier-stokes", 32), ("burgers-walls", 8), ("shallow-water", 4)]
)
def test_an_average_over_a_group_of_symmetries_has_them(problem: str, images: int) -> None:
    """Each element of the group turns what is given into something whose answer is the image of the answer."""
    symmetries, fields = (
        PROBLEMS[problem].symmetries,
        {"burgers-walls": 2, "shallow-water": 3}.get(problem, 1),
    )
    given = torch.randn(2, 8, 8, 1, fields, dtype=torch.float64)
    model = Forecaster(OneSided(), 1, residual=False, fields=fields).double().average(symmetries, images)
    averaged = model.averaged(given)
    assert not torch.allclose(model(given), averaged)
    for element in spread_elements(symmetries, given, images):
        there = model.averaged(moved(symmetries, given, element))
        assert torch.allclose(there, moved(symmetries, averaged, element), atol=1e-12)


def test_averaging_changes_nothing_of_a_model_that_has_the_symmetries() -> None:
    given = torch.randn(2, 8, 8, 10, 1, dtype=torch.float64)
    symmetries = PROBLEMS["darcy"].symmetries
    model = Forecaster(Neighbours(), 1, residual=True).double()
    alone = model.predict(given, 3)
    for images in (2, 4, 8):
        assert torch.allclose(model.average(symmetries, images).predict(given, 3), alone, rtol=1e-12)
    model.net = OneSided()
    assert not torch.allclose(model.predict(given, 3), model.average(symmetries, 1).predict(given, 3))


@pytest.mark.parametrize("problem", ["darcy", "navier-stokes", "burgers-walls", "shallow-water"])
def test_every_move_has_a_way_back(problem: str) -> None:
    symmetries = PROBLEMS[problem].symmetries
    given = torch.randn(2, 8, 8, 3, {"burgers-walls": 2, "shallow-water": 3}.get(problem, 1))
    elements = spread_elements(symmetries, given, 8)
    assert elements[0] == [0] * len(symmetries)
    assert len({tuple(element) for element in elements}) == 8
    for element in elements:
        there = moved(symmetries, given, element)
        assert torch.equal(moved(symmetries, there, element, inverse=True), given)
    with pytest.raises(UserError, match="images of a field"):
        spread_elements(symmetries, given, 10_000)
