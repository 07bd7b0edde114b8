"""From options to the samples that a run trains, validates and tests on."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from data.fields.generator import ensure
from data.fields.layout import Grid
from data.fields.options import Told
from data.fields.reader import Fields
from lab.errors import UserError
from pde.config import DataOptions, opened
from pde.problems import OWN, PROBLEMS, Problem

PIECE = 16
"""Samples whose statistics are taken at a time; they need several copies."""


class Samples(NamedTuple):
    """What is given of each sample and what is wanted, both (sample, row, column, frame, field).

    Where there are constants, what is given has them behind its fields.
    """

    given: Tensor
    wanted: Tensor

    def pieces(self) -> Iterator[tuple[Tensor, Tensor]]:
        """All samples, a few at a time."""
        return zip(self.given.split(PIECE), self.wanted.split(PIECE), strict=True)

    def trajectories(self, first: int) -> Iterator[Tensor]:
        """The frames from `first` on, a few samples at a time."""
        for given, wanted in self.pieces():
            yield torch.cat((given[..., : wanted.shape[-1]], wanted), 3)[..., first:, :]

    def dataset(self) -> TensorDataset:
        """Item i is what is given of sample i, and what is wanted."""
        return TensorDataset(self.given, self.wanted)

    def part(self, sample: int, first: int, last: int) -> tuple[Tensor, Tensor]:
        """The frames `first` to `last` of a sample, (row, column, frame, field), and its constants."""
        given, wanted = self.given[sample], self.wanted[sample]
        fields, before = wanted.shape[-1], given.shape[2]
        late = wanted[..., max(first - before, 0) : max(last + 1 - before, 0), :]
        return torch.cat((given[..., first : last + 1, :fields], late), 2), given[..., 0, fields:]


class OnDemand(Dataset[tuple[Tensor, Tensor]]):
    """Samples that are read when they are asked for: item i is what is given of sample i, and what is wanted.

    It answers to what `Samples` answers to, one sample at a time.
    """

    def __init__(self, fields: Fields, problem: Problem) -> None:
        self.fields, self.problem = fields, problem

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        given, wanted = samples_of(self.fields.one(index), self.problem)
        return given[0], wanted[0]

    def pieces(self) -> Iterator[tuple[Tensor, Tensor]]:
        """One sample after another, with a sample axis of 1."""
        for index in range(len(self)):
            given, wanted = self[index]
            yield given[None], wanted[None]

    def trajectories(self, first: int) -> Iterator[Tensor]:
        """The frames from `first` on, one sample after another, with a sample axis of 1."""
        for index in range(len(self)):
            yield self.fields.part(index, slice(first, None))[None]

    def dataset(self) -> "OnDemand":
        """Itself."""
        return self

    def part(self, sample: int, first: int, last: int) -> tuple[Tensor, Tensor]:
        """The frames `first` to `last` of a sample, (row, column, frame, field), and its constants."""
        frames = self.fields.part(sample, slice(first, last + 1))
        return frames, self.fields.one(sample).load_constants()[0]


class Steps(Dataset[tuple[Tensor, Tensor]]):
    """Steps from each of the frames `first`, `first` + 1, ... of every sample.

    An item is the frame (row, column, frame, field) with up to `lead` frames before it, as many for every item, and the
    constants behind its fields; and the frame after it.
    """

    def __init__(self, samples: Samples | OnDemand, frames: int, first: int, lead: int = 0) -> None:
        self.samples, self.first, self.lead = samples, first, min(lead, first)
        self.count = frames - 1 - first
        self.size = len(samples.dataset()) * self.count

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        sample, step = divmod(index, self.count)
        now = self.first + step
        frames, constants = self.samples.part(sample, now - self.lead, now + 1)
        given, following = frames[..., :-1, :], frames[..., -1, :]
        kept = constants[..., None, :].expand(*given.shape[:-1], -1)
        return torch.cat((given, kept), -1), following


class Split:
    """The first samples of a file to train on, those after them to validate on, the last to test on."""

    def __init__(self, config: DataOptions) -> None:
        self.config, self.problem = config, config.about
        train, val, test = config.num_train, config.num_val, config.num_test
        path = made_path(config) if config.data is None else config.data
        everything = open_samples(path, self.problem, config)
        if self.problem.case is not None:
            everything.expect(**{self.problem.case: getattr(config, self.problem.case)})
        if config.resolution is not None:
            everything = everything.at_resolution(config.resolution)
        if config.data is None:  # a file with more samples serves as well; its first ones are these
            everything, _ = everything.split(train + val + test, 0)
        known, self.test = everything.split(train + val, test)
        self.train, self.validation = known.split(train, val)

    @property
    def grid(self) -> Grid:
        """Where the points lie."""
        return self.train.grid

    @property
    def meaning(self) -> dict[str, Any]:
        """What the numbers are: names of the fields, and the time between frames."""
        inputs, times = self.train.inputs if self.problem.static else self.train.names, self.train.times
        interval = None if self.problem.static else float(times[1] - times[0])
        return {
            "input_names": list(inputs),
            "field_names": list(self.train.names),
            "constant_names": list(self.train.constants),
            "units": self.train.units,
            "interval": interval,
        }

    def load(self, part: Fields) -> Samples | OnDemand:
        """The samples of a part, all at once or, where they take more memory than is allowed, one by one.

        Of samples that are loaded at once, those that teach nothing are refused.
        """
        if part.nbytes > self.config.memory_gb * 2**30:
            return OnDemand(part, self.problem)
        samples = samples_of(part, self.problem)
        _refuse_empty(part, samples)
        return samples

    def describe(self) -> dict[str, Any]:
        """What a run's manifest says of its data."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        ranges = {name: [part.samples.start, part.samples.stop] for name, part in parts.items()}
        origin = "simulated" if self.config.data is None else "file"
        return {**self.train.describe(), "origin": origin, "samples": ranges}


def _refuse_empty(part: Fields, samples: Samples) -> None:
    """Errors are relative to a sample's size, and fields are divided by their spread: neither may be zero."""
    sizes = samples.wanted.abs().flatten(1).amax(1)
    if (zero := (sizes == 0).nonzero()).numel():
        raise UserError(
            f"{part.path}: sample {part.samples[int(zero[0])]} is zero throughout; give a file without such samples."
        )
    for names, values in ((part.inputs if part.static else (), samples.given), (part.names, samples.wanted)):
        for name, field in zip(names, values.unbind(-1), strict=False):
            if len(part) > 1 and field.min() == field.max():
                raise UserError(
                    f"{part.path}: {name} is {float(field.max()):g} everywhere, so that it teaches nothing; "
                    "give another file, or leave the field out."
                )


def open_samples(path: Path, problem: Problem, told: Told | None = None) -> Fields:
    """A file of samples of this problem; own data may be of any."""
    fields = opened(path, told or Told())
    if problem.name not in (fields.problem, OWN):
        remedy = f" or --problem {fields.problem if fields.problem in PROBLEMS else OWN}"
        raise UserError(
            f"{path} holds samples of {fields.problem}, not of {problem.name}; give another file{remedy}."
        )
    if not problem.static and fields.frames <= problem.frames_in:
        raise UserError(
            f"{path} has {fields.frames} frames; "
            f"a forecast needs more than the {problem.frames_in} it starts from."
        )
    return fields


def samples_of(fields: Fields, problem: Problem) -> Samples:
    """All samples at once: what is given and what is wanted."""
    values = fields.load()
    if problem.static:
        return Samples(fields.load_inputs()[..., None, :], values)
    given, wanted = values[..., : problem.frames_in, :], values[..., problem.frames_in :, :]
    if fields.constants:
        constants = fields.load_constants()[..., None, :].expand(*given.shape[:-1], -1)
        given = torch.cat((given, constants), -1)
    return Samples(given, wanted)


def made_path(config: DataOptions) -> Path:
    """The generated file of a problem, made now if it is missing."""
    problem = PROBLEMS[config.problem]
    options = {key.removeprefix("solver_"): getattr(config, key) for key in problem.options}
    chosen = {key: value for key, value in options.items() if value is not None}
    samples = config.num_train + config.num_val + config.num_test
    generator = import_module(f"{problem.package}.config").GenerateConfig
    return ensure(generator(num_samples=samples, **chosen))
