"""From options to the samples that a run trains, validates and tests on."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from data.fields.generator import ensure
from data.fields.layout import Grid
from data.fields.options import Told
from data.fields.reader import Fields, open_fields
from lab.errors import UserError
from pde.config import DataOptions
from pde.problems import OWN, PROBLEMS, Problem


class Samples(NamedTuple):
    """What is given of each sample and what is wanted, both (sample, row, column, frame, field)."""

    given: Tensor
    wanted: Tensor


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
        return {"input_names": list(inputs), "field_names": list(self.train.names), "interval": interval}

    def load(self, part: Fields) -> Samples:
        """All samples of a part at once, at the resolution asked for; those that teach nothing are refused."""
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
    fields = open_fields(path, told=told)
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
    return Samples(values[..., : problem.frames_in, :], values[..., problem.frames_in :, :])


def made_path(config: DataOptions) -> Path:
    """The generated file of a problem, made now if it is missing."""
    problem = PROBLEMS[config.problem]
    options = {key.removeprefix("solver_"): getattr(config, key) for key in problem.options}
    chosen = {key: value for key, value in options.items() if value is not None}
    samples = config.num_train + config.num_val + config.num_test
    generator = import_module(f"{problem.package}.config").GenerateConfig
    return ensure(generator(num_samples=samples, **chosen))
