"""The ways to train a predictor; comparisons hold the recipe fixed."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from data.fields.layout import Grid
from lab.experiment import Experiment
from pde.augment import random_images
from pde.config import TrainConfig
from pde.forecaster import Forecaster, OneShot, Predictor
from pde.metrics import error_per_frame, relative_error
from pde.models import all_options, build
from pde.models.latent import coarse
from pde.models.mno import transform_parameters
from pde.problems import PROBLEMS
from pde.sources import Samples


class Training(Experiment):
    """What all recipes share: the score, the optimiser's groups, the header. A batch is (given, wanted)."""

    model: Predictor
    config: TrainConfig
    weights: Tensor | None

    def __init__(
        self,
        model: Predictor,
        config: TrainConfig,
        in_channels: int,
        options: dict[str, Any],
        grid: Grid,
    ) -> None:
        super().__init__(model, config)
        self.in_channels, self.options, self.geometry = in_channels, options, grid.geometry
        self.register_buffer("weights", grid.weights, persistent=False)

    def training_step(self, batch: list[Tensor], batch_index: int) -> Tensor:
        if self.config.symmetries:
            batch = random_images(PROBLEMS[self.config.problem].symmetries, *batch)
        return super().training_step(batch, batch_index)

    def scores(self, batch: list[Tensor]) -> dict[str, Tensor]:
        """The relative error of the whole forecast."""
        given, wanted = batch
        predicted = self.model.predict(given, wanted.shape[3])
        both = self.model.measured(predicted), self.model.measured(wanted)
        return {"error": relative_error(*both, self.weights)}

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
        problem = PROBLEMS[self.config.problem]
        case = {} if problem.case is None else {problem.case: getattr(self.config, problem.case)}
        return case | {
            "app": "pde",
            "problem": self.config.problem,
            "model": self.config.model,
            "options": all_options(self.config.model, self.options),
            "in_frames": self.config.in_frames,
            "in_channels": self.in_channels,
            "residual": self.config.recipe == "markov",
            "fields": self.model.fields,
            "resolution": list(self.model.net.resolution),  # type: ignore[arg-type]
            "geometry": self.geometry.to_dict(),
            "recipe": self.config.recipe,
        }


class Markov(Training):
    """One frame in, one step, from every frame of every trajectory, with noise on the normalised input.

    loss = mean of ||next - truth|| / ||truth||, both normalised
    """

    def loss(self, batch: list[Tensor]) -> Tensor:
        now, following = batch
        noise = self.config.noise * self.model.std * torch.randn_like(now)
        predicted = self.model((now + noise)[..., None, :])[..., 0, :]
        both = self.model.centred(predicted), self.model.centred(following)
        return relative_error(*both, self.weights).mean()


class Rollout(Training):
    """Ten frames in, the loss summed over the forecast and differentiated through all of it: FNO's protocol."""

    def loss(self, batch: list[Tensor]) -> Tensor:
        given, wanted = batch
        predicted = self.model.predict(given, wanted.shape[3])
        return error_per_frame(predicted, wanted, self.weights).sum(1).mean()


class Map(Training):
    """The answer to an input in one step; the loss is the error itself."""

    def loss(self, batch: list[Tensor]) -> Tensor:
        return self.scores(batch)["error"].mean()


def make_training(config: TrainConfig, samples: Samples, grid: Grid) -> tuple[Training, Dataset[Any]]:
    """The experiment that the config asks for, and its training data."""
    options, fields = net_options(config, grid), samples.wanted.shape[-1]
    channels = config.in_frames * samples.given.shape[-1]
    net = build(config.model, channels, grid.resolution, fields, **options)
    shared = config, channels, options, grid
    if config.recipe == "map":
        model = OneShot(net, fields)
        model.normalise_like(*samples)
        return Map(model, *shared), TensorDataset(*samples)
    forecaster = Forecaster(net, config.in_frames, residual=config.recipe == "markov", fields=fields)
    if config.recipe == "fno":
        return Rollout(forecaster, *shared), TensorDataset(*samples)
    trajectories = torch.cat(samples, dim=3)
    forecaster.normalise_like(trajectories)
    frames = trajectories.permute(0, 3, 1, 2, 4).contiguous()
    now, following = frames[:, :-1].flatten(0, 1), frames[:, 1:].flatten(0, 1)
    return Markov(forecaster, *shared), TensorDataset(now, following)


def net_options(config: TrainConfig, grid: Grid) -> dict[str, Any]:
    """The options of the network: those chosen, in terms of the grid that the data has."""
    options, geometry = config.model_options(), grid.geometry
    if config.padding is not None:
        options["padding"] = geometry.padding(config.padding, grid.resolution)
    if config.model == "sfno" or config.start == "sht":
        options["latitudes"] = geometry.latitudes
    if "sht" in geometry.transforms and config.is_latent and config.latent is None:
        # As many latitudes as the harmonics need, whatever the start, so that all starts have the same shapes.
        modes = all_options(config.model, options)["modes"]
        options["latent"] = coarse(grid.resolution, modes, sphere=True)
    return options
