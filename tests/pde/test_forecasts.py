"""Forecasts, errors, recipes and splits: what is measured, and on what."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pde.forecaster import Forecaster, OneShot, from_header
from pde.models.legendre import quadrature
from pde.recipes import Markov, Rollout, make_training
from torch import Tensor, nn

from data.fields.geometry import Box
from data.fields.layout import Grid
from lab.errors import UserError
from pde.config import DataConfig, TrainConfig
from pde.metrics import error_per_frame, relative_error
from pde.models import build
from pde.sources import Samples, Split


def config(**options: Any) -> TrainConfig:
    small = {"model": "fno", "width": 4, "modes": 3, "depth": 2}
    return TrainConfig(**{**small, **options})


def flow(trajectories: Tensor) -> tuple[Samples, Grid]:
    """Trajectories (sample, x, y, frame) of one field as what a flow's file gives."""
    fields = trajectories[..., None]
    return Samples(fields[..., :10, :], fields[..., 10:, :]), Grid.of(Box(), trajectories.shape[1])


class Sum(nn.Module):
    """A network whose answer is known: the sum of the frames it sees."""

    resolution = (4, 4)

    def forward(self, frames: Tensor) -> Tensor:
        return frames.sum(-1, keepdim=True)


def test_error_is_that_of_the_whole_block() -> None:
    truth = torch.zeros(1, 1, 1, 2, 1)
    truth[..., 0, :], truth[..., 1, :] = 3.0, 4.0
    prediction = torch.zeros_like(truth)
    prediction[..., 1, :] = 4.0
    assert torch.allclose(relative_error(prediction, truth), torch.tensor([3 / 5]))
    assert torch.allclose(error_per_frame(prediction, truth), torch.tensor([[1.0, 0.0]]))


def test_weighted_error_is_the_integral_over_the_sphere() -> None:
    theta, weights = quadrature("legendre-gauss", 12)
    truth = torch.ones(1, 12, 5, 1, 1, dtype=torch.float64)
    prediction = 1 + torch.cos(theta).view(1, 12, 1, 1, 1) * truth
    error = relative_error(prediction, truth, weights / weights.mean())
    assert float(error) == pytest.approx(3**-0.5, abs=1e-12)  # the mean of cos^2 over a sphere is a third
    assert torch.allclose(error_per_frame(prediction, truth, weights), error[:, None])


def test_rollout_feeds_its_own_frames_back() -> None:
    forecaster = Forecaster(Sum(), in_frames=2, residual=False)
    first = torch.tensor([1.0, 1.0])[:, None].expand(1, 4, 4, 2, 1)
    assert forecaster.rollout(first, 5)[0, 0, 0, :, 0].tolist() == [2.0, 3.0, 5.0, 8.0, 13.0]


def test_forecast_starts_from_the_last_frame_given() -> None:
    forecaster = Forecaster(Sum(), in_frames=1, residual=False)
    given = torch.arange(10.0)[:, None].expand(1, 4, 4, 10, 1)
    assert forecaster.predict(given, 3)[0, 0, 0, :, 0].tolist() == [9.0, 9.0, 9.0]


@pytest.mark.parametrize("fields", [1, 3])
def test_normalisation_is_undone(fields: int) -> None:
    trajectories = 5 + torch.tensor([3.0, 100.0, 0.1])[:fields] * torch.randn(6, 4, 4, 12, fields)
    forecaster = Forecaster(nn.Identity(), in_frames=1, residual=False, fields=fields)
    forecaster.normalise_like(trajectories)
    frame = trajectories[..., :1, :]
    assert torch.allclose(forecaster(frame), frame, atol=1e-5)


def test_each_field_counts_alike() -> None:
    trajectories = 5 + torch.tensor([1e3, 1e-3]) * torch.randn(6, 8, 8, 12, 2)
    forecaster = Forecaster(nn.Identity(), in_frames=1, residual=False, fields=2)
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
    forecaster = Forecaster(nn.Identity(), in_frames=1, residual=True)
    forecaster.change.fill_(0.5)
    frame = torch.randn(2, 4, 4, 1, 1)
    assert torch.allclose(forecaster(frame), 1.5 * frame)


def test_one_shot_scales_input_and_answer_apart() -> None:
    given = 12 + 3 * torch.randn(6, 4, 4, 1, 1)
    predictor = OneShot(nn.Identity())
    predictor.normalise_like(given, 0.5 + 0.01 * given)  # the answer is the input, scaled
    assert torch.allclose(predictor.predict(given, 1), 0.5 + 0.01 * given, atol=1e-5)


def test_markov_pairs_are_consecutive_frames() -> None:
    trajectories = torch.randn(3, 16, 16, 12)
    training, data = make_training(config(recipe="markov"), *flow(trajectories))
    assert isinstance(training, Markov)
    assert len(data) == 3 * 11  # type: ignore[arg-type]
    now, following = data[11 + 4]
    assert torch.equal(now[..., 0], trajectories[1, ..., 4])
    assert torch.equal(following[..., 0], trajectories[1, ..., 5])


def test_markov_noise_is_relative_to_the_spread_of_the_data() -> None:
    trajectories = 100 * torch.randn(3, 16, 16, 12)
    training, _ = make_training(config(recipe="markov", noise=0.01), *flow(trajectories))
    seen = []
    training.model.forward = lambda frames: seen.append(frames) or frames  # type: ignore[method-assign,func-returns-value]
    field = torch.zeros(50, 16, 16, 1)
    training.loss([field, torch.ones_like(field)])
    assert 0.9 < float(seen[0].std()) < 1.1


def test_rollout_loss_reaches_the_first_step_through_all_others() -> None:
    trajectories = torch.randn(2, 16, 16, 13)
    samples, grid = flow(trajectories)
    training, data = make_training(config(recipe="fno"), samples, grid)
    assert isinstance(training, Rollout)
    loss = training.loss(list(samples))
    expected = torch.stack(
        [
            error_per_frame(training.model.predict(given[None], 3), wanted[None]).sum()
            for given, wanted in data  # type: ignore[attr-defined]
        ]
    ).mean()
    assert torch.allclose(loss, expected)
    assert float(training.model.std) == 1.0  # no normalisation in this recipe
    given = samples.given.clone().requires_grad_()
    last = training.model.predict(given, 3)[..., -1, :].sum()
    (gradient,) = torch.autograd.grad(last, given)
    assert gradient[..., 0, :].abs().max() > 0  # ten frames in, through three steps


def test_transforms_are_a_slower_group_that_decays_towards_its_start() -> None:
    options = config(model="mno", groups=2, transform_lr=0.1, transform_decay=0.7)
    training, _ = make_training(options, *flow(torch.randn(2, 16, 16, 12)))
    ordinary, transforms = training.parameter_groups()
    assert transforms["lr"] == pytest.approx(0.1 * options.lr)
    assert transforms["weight_decay"] == 0.7
    together = [*ordinary["params"], *transforms["params"]]
    assert {id(p) for p in together} == {id(p) for p in training.model.parameters()}
    assert all(float(p.detach().abs().max()) == 0 for p in transforms["params"])  # deviations from the start


def test_splits_do_not_overlap(flow_file: Path) -> None:
    split = Split(DataConfig(nu=1e-2, data=flow_file, num_train=5, num_val=2, num_test=2))
    ranges = [set(part.samples) for part in (split.train, split.validation, split.test)]
    assert [len(part) for part in ranges] == [5, 2, 2]
    assert len(set.union(*ranges)) == 9
    assert split.test.samples == range(8, 10)


def test_a_file_of_another_viscosity_is_refused(flow_file: Path) -> None:
    with pytest.raises(UserError, match="has nu = "):
        Split(DataConfig(nu=1e-3, data=flow_file, num_train=5, num_val=2, num_test=2))


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


def test_header_rebuilds_the_model() -> None:
    training, _ = make_training(config(model="mno", groups=2), *flow(torch.randn(2, 16, 16, 12)))
    header = training.header()
    assert header["options"]["start"] == "dft"  # defaults are written down too
    again = from_header(header)
    again.load_state_dict(training.model.state_dict())
    frame = torch.randn(2, 16, 16, 1, 1)
    assert torch.equal(again(frame), training.model(frame))


def test_foreign_header_is_refused() -> None:
    with pytest.raises(UserError, match="belong to mri"):
        from_header({"app": "mri"})


def test_option_of_another_model_is_refused() -> None:
    with pytest.raises(UserError, match="--groups does nothing with --model fno"):
        TrainConfig(model="fno", groups=2)
