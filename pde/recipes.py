"""The two ways to train a forecaster; comparisons hold the recipe fixed."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from lab.experiment import Experiment
from pde.config import FRAMES_IN, TrainConfig
from pde.forecaster import Forecaster
from pde.metrics import relative_error
from pde.models import all_options, build
from pde.models.mno import transform_parameters


class Training(Experiment):
    """What both recipes share: the score, the optimiser's groups, the header."""

    model: Forecaster
    config: TrainConfig

    def scores(self, batch: list[Tensor]) -> dict[str, Tensor]:
        """The relative error of the whole forecast, for trajectories (batch, x, y, frame)."""
        (trajectory,) = batch
        return {"error": relative_error(self.model.forecast(trajectory), trajectory[..., FRAMES_IN:])}

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Transforms apart: they learn more slowly, and decay towards their start instead of towards zero."""
        transforms = transform_parameters(self.model)
        apart = {id(parameter) for parameter in transforms}
        groups: list[dict[str, Any]] = [
            {"params": [p for p in self.model.parameters() if id(p) not in apart]}
        ]
        if transforms:
            lr = self.config.lr * self.config.transform_lr
            groups.append({"params": transforms, "lr": lr, "weight_decay": self.config.transform_decay})
        return groups

    def header(self) -> dict[str, Any]:
        return {
            "app": "pde",
            "model": self.config.model,
            "options": all_options(self.config.model, self.config.model_options()),
            "in_frames": self.model.in_frames,
            "residual": self.model.residual,
            "resolution": self.model.net.resolution,
            "recipe": self.config.recipe,
            "nu": self.config.nu,
        }


class Markov(Training):
    """One frame in, one step, from every frame of every trajectory, with noise on the normalised input.

    loss = mean of ||next - truth|| / ||truth||, both normalised
    """

    def loss(self, batch: list[Tensor]) -> Tensor:
        now, following = batch
        noise = self.config.noise * self.model.std * torch.randn_like(now)
        predicted = self.model((now + noise)[..., None])[..., 0]
        return relative_error(predicted - self.model.mean, following - self.model.mean).mean()


class Rollout(Training):
    """Ten frames in, the loss summed over the forecast and differentiated through all of it: FNO's protocol."""

    def loss(self, batch: list[Tensor]) -> Tensor:
        (trajectory,) = batch
        predicted = self.model.forecast(trajectory)
        per_frame = (predicted - trajectory[..., FRAMES_IN:]).flatten(1, 2).norm(dim=1)
        return (per_frame / trajectory[..., FRAMES_IN:].flatten(1, 2).norm(dim=1)).sum(1).mean()


def make_training(config: TrainConfig, trajectories: Tensor) -> tuple[Training, Dataset[Any]]:
    """The experiment that the config asks for, and its training data, from (sample, x, y, frame)."""
    markov = config.recipe == "markov"
    net = build(config.model, config.in_frames, trajectories.shape[1], **config.model_options())
    forecaster = Forecaster(net, config.in_frames, residual=markov)
    if not markov:
        return Rollout(forecaster, config), TensorDataset(trajectories)
    forecaster.normalise_like(trajectories)
    frames = trajectories.permute(0, 3, 1, 2).contiguous()
    now, following = frames[:, :-1].flatten(0, 1), frames[:, 1:].flatten(0, 1)
    return Markov(forecaster, config), TensorDataset(now, following)
