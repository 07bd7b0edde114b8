"""A trained model in use: the scaling of its fields, and many steps out of one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from data.fields.geometry import from_dict
from data.fields.layout import Grid
from lab import weights
from lab.errors import UserError
from pde.models import build
from pde.models.parts.model import Model
from pde.models.parts.resolution import Resolution, shown, sides
from pde.problems import PROBLEMS, Symmetry


class Predictor(nn.Module, ABC):
    """From what is given of a sample to what is wanted, both (batch, row, column, frame, field).

    `mean` and `std` are those of each wanted field in the training data; of one field they are plain numbers.
    """

    net: Model
    mean: Tensor
    std: Tensor
    in_frames: int = 1
    """Frames that the network sees."""
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

    A network that carries its fields gives the carried frame, in place of the last, and what is added to it.

    Without `normalise_like` (the fno recipe) mean is 0 and std is 1.
    """

    change: Tensor

    def __init__(self, net: Model, in_frames: int, residual: bool, fields: int = 1) -> None:
        super().__init__(net, fields, {"mean": 0.0, "std": 1.0, "change": 1.0})
        self.in_frames, self.residual = in_frames, residual

    def normalise_like(self, trajectories: Tensor) -> None:
        """Take mean and spread of each field, and of its changes, from (sample, row, column, frame, field)."""
        self.mean, self.std = of_each_field(torch.mean, trajectories), of_each_field(torch.std, trajectories)
        self.change = of_each_field(torch.std, trajectories[..., 1:, :] - trajectories[..., :-1, :])

    def forward(self, frames: Tensor) -> Tensor:
        """The frame after (batch, row, column, in_frames, field): (batch, row, column, 1, field)."""
        normalised = ((frames - self.mean) / self.std).flatten(3)
        carried, new = self.net.step(normalised)
        new = new[..., None, :]
        if self.net.transports:
            return self.mean + self.std * carried[..., None, :] + self.change * new
        if self.residual:
            return frames[..., -1:, :] + self.change * new
        return self.mean + self.std * new

    def rollout(self, first: Tensor, steps: int) -> Tensor:
        """The `steps` frames after the given ones, of which there are at least in_frames, each from those before it."""
        frames = first[..., -self.in_frames :, :]
        made = []
        for _ in range(steps):
            made.append(self.averaged(frames))
            frames = torch.cat((frames, made[-1]), dim=3)[..., 1:, :]
        return torch.cat(made, dim=3)

    def predict(self, given: Tensor, frames: int) -> Tensor:
        return self.rollout(given, frames)


class OneShot(Predictor):
    """An input to its one answer: answer = mean + std * net((input - input_mean) / input_std)."""

    input_mean: Tensor
    input_std: Tensor

    def __init__(self, net: Model, fields: int = 1) -> None:
        super().__init__(net, fields, {"mean": 0.0, "std": 1.0})
        self.register_buffer("input_mean", torch.tensor(0.0))
        self.register_buffer("input_std", torch.tensor(1.0))

    @property
    def input_scale(self) -> tuple[Tensor, Tensor]:
        return self.input_mean, self.input_std

    def normalise_like(self, given: Tensor, wanted: Tensor) -> None:
        """Take mean and spread of the inputs, and of each field of the answers."""
        self.input_mean, self.input_std = given.mean(), given.std()
        self.mean, self.std = of_each_field(torch.mean, wanted), of_each_field(torch.std, wanted)

    def forward(self, given: Tensor) -> Tensor:
        """(batch, row, column, 1, field) to (batch, row, column, 1, field)."""
        out: Tensor = self.net(((given - self.input_mean) / self.input_std).flatten(3))[..., None, :]
        return self.mean + self.std * out

    def predict(self, given: Tensor, frames: int) -> Tensor:
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

        _, made = scan(step, rows_first(frames), frames.new_zeros(self.steps, 1))
        return made.permute(1, 2, 3, 0, 4)


def of_each_field(statistic: Callable[[Tensor], Tensor], fields: Tensor) -> Tensor:
    """A statistic of each field (the last axis): a vector, or a plain number where there is one field."""
    values = [statistic(field) for field in fields.unbind(-1)]
    return values[0] if len(values) == 1 else torch.stack(values)


def from_header(header: dict[str, Any]) -> Predictor:
    """The model that the header of a weights file describes, with fresh weights."""
    grid = Grid.of(from_dict(header["geometry"]), *header["resolution"])
    net = build(header["model"], header["in_channels"], grid, header["fields"], **header["options"])
    if header["recipe"] == "map":
        return OneShot(net, header["fields"])
    return Forecaster(net, header["in_frames"], header["residual"], header["fields"])


def load(path: str | Path, images: int = 1) -> Predictor:
    """The trained model of a weights file; each of its steps is averaged over so many images under symmetries."""
    file = weights.load(path, app="pde")
    predictor = file.rebuilt(from_header, path).eval()
    if images == 1:
        return predictor
    problem = PROBLEMS.get(file.header["problem"])
    if problem is None or not problem.symmetries:
        raise UserError(f"{path} was trained on {file.header['problem']}, of which no symmetries are known.")
    return predictor.average(problem.symmetries, images)
