"""A trained model in use: the scaling of its fields, and many steps out of one."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from data.fields.geometry import from_dict
from data.fields.layout import Grid
from lab import weights
from lab.errors import UserError
from pde.models import build
from pde.models.parts.model import Model
from pde.models.parts.resolution import Resolution, shown, sides
from pde.moments import moments
from pde.problems import PROBLEMS, Symmetry

BEYOND = 0.1
"""How far beyond the range of the training data a value may lie, as a share of that range."""


class Predictor(nn.Module, ABC):
    """From what is given of a sample to what is wanted, both (batch, row, column, frame, field).

    `mean` and `std` are those of each wanted field in the training data; of one field they are plain numbers.
    """

    net: Model
    mean: Tensor
    std: Tensor
    in_frames: int = 1
    """Frames that the network sees."""
    constants: int = 0
    """Fields that are given beside those that are forecast, and stay as they are."""
    low: Tensor | None = None
    high: Tensor | None = None
    """The least and the largest value of each field in the training data, where they are known."""
    symmetries: Sequence[Symmetry] = ()
    images: int = 1
    """Images under the symmetries over which every step is averaged."""

    def __init__(self, net: Model, fields: int, scales: dict[str, float]) -> None:
        super().__init__()
        self.net, self.fields = net, fields
        for name, value in scales.items():
            self.register_buffer(name, torch.full(() if fields == 1 else (fields,), value))

    @abstractmethod
    def predict(self, given: Tensor, frames: int) -> Tensor:
        """The `frames` wanted frames."""

    def begin(self, given: Tensor) -> Tensor:
        """What the first step sees of what is given."""
        return given

    @property
    def given_fields(self) -> int:
        """Fields of a given frame, with the constants behind them."""
        return self.fields + self.constants

    def _check(self, given: Tensor) -> None:
        """Refuse what the network was not made for; other numbers of fields would be spread over those it knows."""
        fields, right = self.given_fields, given.ndim == 5 and given.shape[3] >= self.in_frames
        if not right or given.shape[4] != fields:
            raise UserError(
                f"the model takes (batch, row, column, frame, {fields}) with {self.in_frames} frames or more, "
                f"constants behind the fields; got the shape {tuple(given.shape)}."
            )

    @torch.inference_mode()
    def forecast(self, given: Tensor, steps: int) -> "Forecast":
        """The `steps` frames after the given ones, without gradients, and when each sample left the training range.

        A sample has left it where a value lies further outside of what the training data spans than a tenth of that
        span, or is not finite: from there on the model extrapolates. A warning says so, too.
        """
        frames = self.predict(given, steps)
        left = left_after(frames, self.low, self.high)
        if left is not None and (left > 0).any():
            gone = left[left > 0]
            warnings.warn(
                f"{len(gone)} of {len(left)} forecasts leave the range of the training data, the first at step "
                f"{int(gone.min())} of {steps}; from there on the model extrapolates.",
                stacklevel=3,
            )
        return Forecast(frames, left)

    def average(self, symmetries: Sequence[Symmetry], images: int) -> Self:
        """Average every step over so many images, evenly spread over the group that the symmetries generate.

            step(w) = mean over g of g^-1 net(g w)

        A model that has the symmetries exactly stays what it is; the error of another one falls, for `images` times
        the work.
        """
        self.symmetries, self.images = symmetries, images
        return self

    def averaged(self, given: Tensor) -> Tensor:
        """One step from what is given, averaged over images if that was asked for."""
        if self.images == 1:
            return self(given)
        made = [
            moved(self.symmetries, self(moved(self.symmetries, given, element)), element, inverse=True)
            for element in spread_elements(self.symmetries, given, self.images)
        ]
        return torch.stack(made).mean(0)

    @property
    def input_scale(self) -> tuple[Tensor, Tensor]:
        """Mean and spread of what is given."""
        return self.mean, self.std

    def centred(self, fields: Tensor) -> Tensor:
        """Fields as a loss compares them: about their mean and, of several, each in units of its spread."""
        return fields - self.mean if self.fields == 1 else (fields - self.mean) / self.std

    def measured(self, fields: Tensor) -> Tensor:
        """Fields as a test compares them: as they are; several, that have units of their own, as in a loss."""
        return fields if self.fields == 1 else self.centred(fields)

    def at_resolution(self, resolution: Resolution) -> "Predictor":
        """The same model on another grid; only those whose transforms can be resampled have one."""
        there, wanted = self.net.resolution, sides(resolution)
        if wanted == there:
            return self
        reason = self.net.not_resampled_because(wanted)
        if reason:
            raise UserError(
                f"the model was trained on {shown(there)} points and the data has {shown(wanted)}: {reason}; "
                "give data of the resolution it was trained on."
            )
        self.net.resampled(wanted)
        return self


class Forecaster(Predictor):
    """Frames in, frames out: a network that takes one step, and the scaling of its recipe.

        next = last + s * net((frames - mean) / std)      residual
        next = mean + std * net((frames - mean) / std)    otherwise

    A network that carries its fields gives the carried frame, in place of the last, and what is added to it. Constants
    stand behind the fields of a frame; the network sees them once, in front of all frames, and the next frame has the
    same.

    Without `normalise_like` (the fno recipe) mean is 0 and std is 1.
    """

    change: Tensor
    constant_mean: Tensor
    constant_std: Tensor

    def __init__(
        self, net: Model, in_frames: int, residual: bool, fields: int = 1, constants: int = 0
    ) -> None:
        super().__init__(net, fields, {"mean": 0.0, "std": 1.0, "change": 1.0})
        self.in_frames, self.residual, self.constants = in_frames, residual, constants
        if constants:
            self.register_buffer("constant_mean", torch.zeros(constants))
            self.register_buffer("constant_std", torch.ones(constants))

    @property
    def input_scale(self) -> tuple[Tensor, Tensor]:
        if not self.constants:
            return self.mean, self.std
        ours = self.mean.view(-1), self.std.view(-1)
        return torch.cat((ours[0], self.constant_mean)), torch.cat((ours[1], self.constant_std))

    def normalise_like(
        self, trajectories: Tensor | Callable[[], Iterable[Tensor]], odd: Sequence[int] = ()
    ) -> None:
        """Take mean and spread of each field, and of its changes, from (sample, row, column, frame, field).

        All samples at once, or a function that goes through them, some at a time: once for the fields and once for
        their changes. Fields that are `odd` have no mean.
        """
        pieces = (lambda: [trajectories]) if isinstance(trajectories, Tensor) else trajectories
        self.mean, self.std, self.low, self.high = moments(pieces(), odd)
        changes = (each[..., 1:, :] - each[..., :-1, :] for each in pieces())
        self.change = moments(changes, odd).std

    def normalise_constants(self, constants: Tensor | Iterable[Tensor]) -> None:
        """Take mean and spread of each constant from (..., constant), all at once or some at a time."""
        mean, std, _, _ = moments([constants] if isinstance(constants, Tensor) else constants)
        self.constant_mean, self.constant_std = mean.view(-1), std.view(-1)

    def forward(self, frames: Tensor) -> Tensor:
        """The frame after (batch, row, column, in_frames, field): (batch, row, column, 1, field)."""
        if self.constants:
            frames, constants = frames[..., : self.fields], frames[..., -1:, self.fields :]
        normalised = ((frames - self.mean) / self.std).flatten(3)
        if self.constants:
            given = (constants[..., 0, :] - self.constant_mean) / self.constant_std
            normalised = torch.cat((given, normalised), -1)
        carried, new = self.net.step(normalised)
        new = new[..., None, :]
        if self.net.transports:
            following = self.mean + self.std * carried[..., None, :] + self.change * new
        elif self.residual:
            following = frames[..., -1:, :] + self.change * new
        else:
            following = self.mean + self.std * new
        return torch.cat((following, constants), -1) if self.constants else following

    def begin(self, given: Tensor) -> Tensor:
        """What the first step sees: the last of the given frames, of which there are at least in_frames.

        A network with a finer grid is led in, as far as there are frames before: it makes a frame that is known, which
        then has the known values at the points of the data and the network's own between them.
        """
        count = given.shape[3]
        self._check(given)
        lead = min(self.net.lead, count - self.in_frames)
        first = count - self.in_frames - lead
        frames = self.net.refined(given[..., first : first + self.in_frames, :])
        for known in range(count - lead, count):
            made = self(frames)
            made = made + self.net.refined(given[..., known : known + 1, :] - self.net.seen(made))
            frames = torch.cat((frames, made), dim=3)[..., 1:, :]
        return frames

    def rollout(self, first: Tensor, steps: int) -> Tensor:
        """The `steps` frames after the given ones, each from those before it, on the grid of the network."""
        frames, made = self.begin(first), []
        for _ in range(steps):
            made.append(self.averaged(frames))
            frames = torch.cat((frames, made[-1]), dim=3)[..., 1:, :]
        return torch.cat(made, dim=3)

    def predict(self, given: Tensor, frames: int) -> Tensor:
        made = self.net.seen(self.rollout(given, frames))
        return made[..., : self.fields] if self.constants else made


class OneShot(Predictor):
    """An input to its one answer: answer = mean + std * net((input - input_mean) / input_std)."""

    input_mean: Tensor
    input_std: Tensor

    def __init__(self, net: Model, fields: int = 1) -> None:
        super().__init__(net, fields, {"mean": 0.0, "std": 1.0})
        shape = () if net.in_channels == 1 else (net.in_channels,)
        self.register_buffer("input_mean", torch.zeros(shape))
        self.register_buffer("input_std", torch.ones(shape))

    @property
    def given_fields(self) -> int:
        return self.net.in_channels

    @property
    def input_scale(self) -> tuple[Tensor, Tensor]:
        return self.input_mean, self.input_std

    def normalise_like(self, given: Tensor | Iterable[Tensor], wanted: Tensor | Iterable[Tensor]) -> None:
        """Take mean and spread of each input, and of each field of the answers, all at once or some at a time."""
        given, wanted = ([each] if isinstance(each, Tensor) else each for each in (given, wanted))
        self.input_mean, self.input_std, _, _ = moments(given)
        self.mean, self.std, self.low, self.high = moments(wanted)

    def forward(self, given: Tensor) -> Tensor:
        """(batch, row, column, 1, field) to (batch, row, column, 1, field)."""
        out: Tensor = self.net(((given - self.input_mean) / self.input_std).flatten(3))[..., None, :]
        return self.mean + self.std * out

    def predict(self, given: Tensor, frames: int) -> Tensor:
        self._check(given)
        return self.averaged(given)


def spread_elements(symmetries: Sequence[Symmetry], fields: Tensor, count: int) -> list[list[int]]:
    """So many elements of the group that the symmetries generate, the identity first: how often to make each move.

    They are spread out evenly; where there are few, they differ in mirrors and transpositions rather than in shifts.
    """
    orders = [symmetry.order(fields) for symmetry in symmetries]
    size = prod(orders)
    if count > size:
        raise UserError(f"there are {size} images of a field under the symmetries, not {count}.")
    elements = [[0] * len(orders) for _ in range(count)]
    for each, element in enumerate(elements):
        number = each * size // count
        for place in sorted(range(len(orders)), key=lambda place: -orders[place]):
            number, element[place] = divmod(number, orders[place])
    return elements


def moved(
    symmetries: Sequence[Symmetry], fields: Tensor, element: Sequence[int], *, inverse: bool = False
) -> Tensor:
    """Fields (sample, row, column, ..., field) after so many moves of each symmetry, or the way back from there."""
    pairs = list(zip(symmetries, element, strict=True))
    for symmetry, moves in reversed(pairs) if inverse else pairs:
        fields = symmetry.image(
            fields, torch.full((len(fields),), moves, device=fields.device), inverse=inverse
        )
    return fields


class Unrolled(nn.Module):
    """The forecast of a fixed number of steps as a module, for export."""

    def __init__(self, predictor: Predictor, steps: int) -> None:
        super().__init__()
        self.predictor, self.steps = predictor, steps

    def forward(self, frames: Tensor) -> Tensor:
        if self.steps == 1 or not torch.compiler.is_compiling():
            return self.predictor.predict(frames, self.steps)
        # Traced as it stands, a rollout would be a graph as many times as large as it has steps; this stays a loop.
        from torch._higher_order_ops.scan import scan

        def step(seen: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
            made = self.predictor(seen)
            return rows_first(torch.cat((seen, made), dim=3)[..., 1:, :]), made.squeeze(3)

        def rows_first(x: Tensor) -> Tensor:
            """A copy in the plain order in memory: what a loop carries keeps its strides."""
            return x.clone(memory_format=torch.contiguous_format)

        begin = rows_first(self.predictor.begin(frames))
        _, made = scan(step, begin, frames.new_zeros(self.steps, 1))
        made = self.predictor.net.seen(made.permute(1, 2, 3, 0, 4))
        return made[..., : self.predictor.fields] if self.predictor.constants else made


class Forecast(NamedTuple):
    """Frames (batch, row, column, step, field), and for each sample the step, from 1, at which it left its range.

    That is the range of the training data. 0 where it stayed inside, None where it is not known.
    """

    frames: Tensor
    left: Tensor | None


def left_after(frames: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor | None:
    """The step at which each sample of (batch, row, column, step, field) left the range; see `Forecast`.

    >>> left_after(torch.tensor([[0.5, 1.05, 1.2], [0.0, 0.5, 1.0]]).view(2, 1, 1, 3, 1), torch.zeros(1), torch.ones(1))
    tensor([3, 0])
    """
    if low is None or high is None:
        return None
    low, high = low.to(frames), high.to(frames)
    slack = BEYOND * (high - low)
    inside = (frames >= low - slack) & (frames <= high + slack)  # NaN is nowhere
    outside = ~inside.all(-1).all(2).all(1)
    return torch.where(outside.any(1), outside.int().argmax(1) + 1, 0)


def from_header(header: dict[str, Any]) -> Predictor:
    """The model that the header of a weights file describes, with fresh weights."""
    grid = Grid.of(from_dict(header["geometry"]), *header["resolution"])
    net = build(header["model"], header["in_channels"], grid, header["fields"], **header["options"])
    predictor: Predictor
    if header["recipe"] == "map":
        predictor = OneShot(net, header["fields"])
    else:
        constants = len(header.get("constant_names", ()))
        predictor = Forecaster(net, header["in_frames"], header["residual"], header["fields"], constants)
    if "range" in header:
        predictor.low, predictor.high = map(torch.tensor, header["range"])
    return predictor


def load(path: str | Path, images: int = 1, symmetries: Sequence[Symmetry] | None = None) -> Predictor:
    """The trained model of a weights file; each of its steps is averaged over so many images under symmetries.

    Those are the symmetries of the problem that it was trained on, unless they are given.
    """
    file = weights.load(path, app="pde")
    predictor = file.rebuilt(from_header, path).eval()
    if images == 1:
        return predictor
    if symmetries is None:
        problem = PROBLEMS.get(file.header["problem"])
        symmetries = () if problem is None else problem.symmetries
    if not symmetries:
        raise UserError(f"{path} was trained on {file.header['problem']}, of which no symmetries are known.")
    for symmetry in symmetries:
        symmetry.require(predictor.net.resolution)
    return predictor.average(symmetries, images)
