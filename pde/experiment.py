"""Loss and scores in training: the recipes. Comparisons hold the recipe fixed."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.data import Dataset

from data.fields.layout import Grid
from lab.budget import Pace, measure
from lab.errors import UserError
from lab.experiment import Experiment
from pde.augment import random_images
from pde.config import OWN_OPTIONS, TrainConfig
from pde.metrics import error_per_frame, relative_error
from pde.models import build
from pde.moments import moments
from pde.predictor import Forecaster, OneShot, Predictor
from pde.problems import OWN
from pde.sources import OnDemand, Samples, Steps


class Training(Experiment):
    """What all recipes share: the score, the optimiser's groups, the header. A batch is (given, wanted)."""

    model: Predictor
    config: TrainConfig
    weights: Tensor | None
    finer: bool = True
    """Whether fields are on the finer grid of the network, where it has one."""

    def __init__(
        self, model: Predictor, config: TrainConfig, grid: Grid, meaning: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(model, config)
        self.meaning = dict(meaning or {})
        self.geometry = grid.geometry
        self.register_buffer("weights", grid.weights, persistent=False)

    def training_step(self, batch: list[Tensor], batch_index: int) -> Tensor:
        if self.config.symmetries:
            batch = random_images(self.config.about.symmetries, *batch)
        return super().training_step(batch, batch_index)

    def on_train_batch_start(self, batch: list[Tensor], batch_index: int) -> None:
        self._reach(self.done, processes=self.trainer.world_size)

    def _reach(self, done: float, processes: int = 1) -> None:
        """Begin what begins after this share of the training; until then it costs nothing.

        Several processes must agree on what has gradients. There everything has them from the start: fields are on the
        finer grid at once, and gradients of transforms that do not learn yet are dropped.
        """
        net = self.model.net
        self.finer = done >= net.refine_from or processes > 1
        if net.transform_from > 0 and processes == 1:
            net.learn_transforms(done >= net.transform_from)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.done < self.model.net.transform_from:
            for parameter in self.model.net.transform_parameters():
                parameter.grad = None

    def pace(self, data: Dataset[Any], validation: Dataset[Any]) -> Pace:
        """The pace of a run, in which steps take longer once transforms learn or fields are carried on a finer grid."""
        net = self.model.net
        shares = {net.refine_from, net.transform_from if net.transform_parameters() else 0.0} - {0.0}
        self._reach(0.0)
        found = measure(self, data, validation)
        for share in sorted(shares):
            self._reach(share)
            found = found.then(measure(self, data), share)
        return found

    def scores(self, batch: list[Tensor]) -> dict[str, Tensor]:
        """The relative error of the whole forecast."""
        given, wanted = batch
        predicted = self.model.predict(given, wanted.shape[3])
        both = self.model.measured(predicted), self.model.measured(wanted)
        return {"error": relative_error(*both, self.weights)}

    def parameter_groups(self) -> Iterable[dict[str, Any]]:
        """Transforms apart: they learn more slowly, and decay towards their start instead of towards zero."""
        net = self.model.net
        transforms = net.transform_parameters()
        apart = {id(parameter) for parameter in transforms}
        yield {"params": [p for p in self.model.parameters() if id(p) not in apart]}
        if transforms:
            lr = self.config.lr * net.transform_lr
            yield {"params": transforms, "lr": lr, "weight_decay": net.transform_decay}

    def _range(self) -> dict[str, Any]:
        low, high = self.model.low, self.model.high
        return {} if low is None or high is None else {"range": [low.tolist(), high.tolist()]}

    def header(self) -> dict[str, Any]:
        config, net = self.config, self.model.net
        case = config.about.case
        return {
            "app": config.app,
            "problem": config.problem,
            "model": config.model,
            "options": dict(config.options),
            "in_frames": config.in_frames,
            "in_channels": net.in_channels,
            "residual": config.recipe == "markov",
            "fields": self.model.fields,
            "resolution": list(net.resolution),
            "geometry": self.geometry.to_dict(),
            **self.meaning,
            **self._range(),
            "recipe": config.recipe,
            **({case: getattr(config, case)} if case else {}),
            **({"own": {key: getattr(config, key) for key in OWN_OPTIONS}} if config.problem == OWN else {}),
        }


class Markov(Training):
    """One frame in, one step, from every frame of every trajectory, with noise on the normalised fields.

    loss = mean of ||next - truth|| / ||truth||, both normalised
    """

    def loss(self, batch: list[Tensor]) -> Tensor:
        given, following = batch
        noise = self.config.noise * self.model.std * torch.randn_like(following)
        now = given[..., -1:, :]
        if self.finer:
            with torch.no_grad():
                now, noise = self.model.begin(given), self.model.net.refined(noise)
        now = now + pad(noise[..., None, :], (0, self.model.constants))
        predicted = self.model.net.seen(self.model(now))[..., 0, : self.model.fields]
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


def make_training(
    config: TrainConfig, samples: Samples | OnDemand, grid: Grid, meaning: Mapping[str, Any] | None = None
) -> tuple[Training, Dataset[Any]]:
    """The experiment that the config asks for, and its training data; the header of the weights quotes `meaning`."""
    for symmetry in config.about.symmetries if config.symmetries else ():
        symmetry.require(grid.resolution)
    given, wanted = next(samples.pieces())
    fields = wanted.shape[-1]
    constants = 0 if config.recipe == "map" else given.shape[-1] - fields
    channels = config.in_frames * (given.shape[-1] - constants) + constants
    net = build(config.model, channels, grid, fields, **config.options)
    if config.recipe == "map":
        model = OneShot(net, fields)
        model.normalise_like((each for each, _ in samples.pieces()), (each for _, each in samples.pieces()))
        return Map(model, config, grid, meaning), samples.dataset()
    forecaster = Forecaster(net, config.in_frames, config.recipe == "markov", fields, constants)
    if constants:
        forecaster.normalise_constants(each[..., 0, fields:] for each, _ in samples.pieces())
    if config.recipe == "fno":
        forecaster.low, forecaster.high = moments(samples.trajectories(0))[2:]
        return Rollout(forecaster, config, grid, meaning), samples.dataset()
    first = config.about.frames_in - 1 if config.first_frame is None else config.first_frame
    frames = given.shape[3] + wanted.shape[3]
    if first > frames - 2:
        raise UserError(f"--first-frame {first}: there are {frames} frames, and a step needs two.")
    forecaster.normalise_like(partial(samples.trajectories, first), _odd_fields(config, fields))
    return Markov(forecaster, config, grid, meaning), Steps(samples, frames, first, net.lead)


def _odd_fields(config: TrainConfig, fields: int) -> list[int]:
    """Fields that the training sees with either sign, or whose zero means something: they are zero on walls."""
    if config.options.get("parity") == "odd":
        return list(range(fields))
    symmetries = config.about.symmetries if config.symmetries else ()
    return sorted({field for symmetry in symmetries for field in symmetry.odd})
