"""The ways to train a predictor; comparisons hold the recipe fixed."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from lab.errors import UserError
from lab.experiment import Experiment
from monarch_core.transforms.sphere import quadrature
from monarch_core.transforms.starts import Latitudes
from pde.config import TrainConfig
from pde.forecaster import Forecaster, OneShot, Predictor
from pde.metrics import error_per_frame, relative_error
from pde.models import all_options, build
from pde.models.parts.latent import coarse
from pde.problems import PROBLEMS
from pde.sources import Domain, Samples
from pde.symmetries import seen_through_symmetries


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
        weights: Tensor | None = None,
    ) -> None:
        super().__init__(model, config)
        self.in_channels, self.options = in_channels, options
        self.register_buffer("weights", weights, persistent=False)

    def training_step(self, batch: list[Tensor], batch_index: int) -> Tensor:
        if self.config.symmetries:
            batch = seen_through_symmetries(PROBLEMS[self.config.problem], *batch)
        return super().training_step(batch, batch_index)

    def scores(self, batch: list[Tensor]) -> dict[str, Tensor]:
        """The relative error of the whole forecast."""
        given, wanted = batch
        predicted = self.model.predict(given, wanted.shape[3])
        both = self.model.measured(predicted), self.model.measured(wanted)
        return {"error": relative_error(*both, self.weights)}

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Transforms apart: they learn more slowly, and decay towards their start instead of towards zero."""
        transforms = self.model.net.transform_parameters()
        apart = {id(parameter) for parameter in transforms}
        groups: list[dict[str, Any]] = [
            {"params": [p for p in self.model.parameters() if id(p) not in apart]}
        ]
        if transforms:
            lr = self.config.lr * self.config.transform_lr
            groups.append({"params": transforms, "lr": lr, "weight_decay": self.config.transform_decay})
        return groups

    def header(self) -> dict[str, Any]:
        header = {
            "app": "pde",
            "problem": self.config.problem,
            "model": self.config.model,
            "options": all_options(self.config.model, self.options),
            "in_frames": self.config.in_frames,
            "in_channels": self.in_channels,
            "residual": self.config.recipe == "markov",
            "fields": self.model.fields,
            "resolution": list(self.model.net.resolution),
            "recipe": self.config.recipe,
        }
        return header | ({"nu": self.config.nu} if self.config.problem == "navier-stokes" else {})


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


def make_training(config: TrainConfig, samples: Samples, domain: Domain) -> tuple[Training, Dataset[Any]]:
    """The experiment that the config asks for, and its training data."""
    options, fields = net_options(config, domain), samples.wanted.shape[-1]
    channels = config.in_frames * samples.given.shape[-1]
    net = build(config.model, channels, domain.resolution, fields, **options)
    shared = config, channels, options, None if domain.weights is None else domain.weights.float()
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


def net_options(config: TrainConfig, domain: Domain) -> dict[str, Any]:
    """The options of the network: those chosen, in terms of the grid that the data has."""
    options, problem = config.model_options(), PROBLEMS[config.problem]
    if config.padding is not None:
        options["padding"] = problem.padding(config.padding, domain.resolution)
    if config.model == "sfno" or config.start == "sht":
        options["latitudes"] = latitudes_of(domain.rows)
    if problem.sphere and config.is_latent and config.latent is None:
        # As many latitudes as the harmonics need, whatever the start, so that all starts have the same shapes.
        modes = all_options(config.model, options)["modes"]
        options["latent"] = coarse(domain.resolution, modes, sphere=True)
    return options


def latitudes_of(colatitudes: Tensor) -> Latitudes:
    """The name of a grid of latitudes."""
    names: tuple[Latitudes, ...] = ("legendre-gauss", "equiangular")
    for name in names:
        if torch.allclose(quadrature(name, len(colatitudes))[0], colatitudes.double(), atol=1e-6):
            return name
    raise UserError(
        "the latitudes of the data are neither Gauss's nor equiangular; harmonics need one of them."
    )
