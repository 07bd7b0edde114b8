"""The recipes: what they learn from, what their loss is, and how their parameters learn."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor

from data.fields.geometry import Box
from data.fields.layout import Grid
from lab import weights
from lab.errors import UserError
from lab.files import read_json
from pde.config import TrainConfig
from pde.experiment import Markov, Rollout, make_training
from pde.metrics import error_per_frame
from pde.sources import Samples


def config(model: str = "fno", recipe: Any = "markov", noise: float = 0.01, **options: Any) -> TrainConfig:
    small = {"width": 4, "modes": 3, "depth": 2}
    return TrainConfig(model=model, recipe=recipe, noise=noise, options={**small, **options})


def flow(trajectories: Tensor) -> tuple[Samples, Grid]:
    """Trajectories (sample, x, y, frame) of one field as what a flow's file gives."""
    fields = trajectories[..., None]
    return Samples(fields[..., :10, :], fields[..., 10:, :]), Grid.of(Box(), trajectories.shape[1])


def test_markov_pairs_are_consecutive_frames() -> None:
    trajectories = torch.randn(3, 16, 16, 12)
    training, data = make_training(config(recipe="markov"), *flow(trajectories))
    assert isinstance(training, Markov)
    assert len(data) == 3 * 2  # type: ignore[arg-type]
    now, following = data[2 + 1]
    assert torch.equal(now[..., 0], trajectories[1, ..., 10:11])
    assert torch.equal(following[..., 0], trajectories[1, ..., 11])


def test_markov_begins_with_the_first_frame_that_it_is_told() -> None:
    trajectories = torch.randn(3, 16, 16, 12)
    early = replace(config(recipe="markov"), first_frame=0)
    _, data = make_training(early, *flow(trajectories))
    assert len(data) == 3 * 11  # type: ignore[arg-type]
    assert torch.equal(data[11 + 4][0][..., 0], trajectories[1, ..., 4:5])
    with pytest.raises(UserError, match="--first-frame 11: there are 12 frames"):
        make_training(replace(early, first_frame=11), *flow(trajectories))


@pytest.mark.parametrize(
    ("symmetries", "parity", "mean"), [(True, "even", 0.0), (False, "odd", 0.0), (False, "even", 3.0)]
)
def test_fields_that_come_with_either_sign_or_are_zero_on_walls_have_no_mean(
    symmetries: bool, parity: str, mean: float
) -> None:
    """Otherwise the network would see the walls of one image at -mean and those of the other at mean."""
    options = {"width": 4, "modes": 3, "depth": 2, "parity": parity, "transport": True}
    asked = TrainConfig(problem="burgers-walls", model="lfno", symmetries=symmetries, options=options)
    u, v = torch.randn(3, 16, 16, 5, 1) + 3, torch.randn(3, 16, 16, 5, 1)
    fields = torch.cat((u, v), -1)
    samples = Samples(fields[..., :1, :], fields[..., 1:, :])
    training, _ = make_training(asked, samples, Grid.of(Box("walls", "walls"), 16))
    found, spread = float(training.model.mean[0]), float(training.model.std[0])
    assert found == pytest.approx(mean, abs=0.2 if mean else 0.0)
    assert spread == pytest.approx(1.0 if mean else 10**0.5, rel=0.1)


def test_markov_noise_is_relative_to_the_spread_of_the_data() -> None:
    trajectories = 100 * torch.randn(3, 16, 16, 12)
    training, _ = make_training(config(recipe="markov", noise=0.01), *flow(trajectories))
    seen = []
    training.model.forward = lambda frames: seen.append(frames) or frames  # type: ignore[method-assign,func-returns-value]
    field = torch.zeros(50, 16, 16, 1)
    training.loss([field[..., None, :], torch.ones_like(field)])
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


def losses_of(folder: Path) -> list[float]:
    """The mean training loss of every epoch."""
    with (folder / "metrics.csv").open() as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def test_training_in_bfloat16_learns_and_the_run_records_it(train_flow: Any, workplace: Path) -> None:
    small = [
        "--model",
        "mno",
        "--width",
        "8",
        "--modes",
        "4",
        "--depth",
        "2",
        "--lr",
        "1e-2",
        "--schedule",
        "constant",
    ]
    half, single = (workplace / "runs" / "pde" / name for name in ("half", "single"))
    assert train_flow(*small, "--precision", "bf16-mixed", "--epochs", "20", "--name", "half") == 0
    assert train_flow(*small, "--precision", "32", "--epochs", "1", "--name", "single") == 0
    losses = losses_of(half)
    assert losses[-1] < 0.5 * losses[0]
    # The same steps, but for rounding to 8 bits: near those of single precision, and not the same.
    assert losses[0] == pytest.approx(losses_of(single)[0], rel=0.05)
    assert losses[0] != losses_of(single)[0]
    assert read_json(half / "manifest.json")["precision"] == "bf16-mixed"
    assert yaml.safe_load((half / "config.yaml").read_text())["precision"] == "bf16-mixed"
    tensors = weights.load(half / "weights.safetensors", app="pde").tensors
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}
