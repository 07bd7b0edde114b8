"""The samples that a run trains, validates and tests on."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from data.fields import Fields, open_fields
from data.navier_stokes.reader import Trajectories, open_trajectories
from lab.errors import UserError
from pde.config import DataConfig
from pde.problems import PROBLEMS, Problem


class Samples(NamedTuple):
    """What is given of each sample and what is wanted, both (sample, row, column, frame, field)."""

    given: Tensor
    wanted: Tensor


@dataclass(frozen=True)
class Domain:
    """Where the points lie: x and y in [0, 1], or colatitude and longitude in radians."""

    rows: Tensor
    columns: Tensor
    weights: Tensor | None = None
    """Quadrature weights of the rows, of mean 1; None where all points weigh the same."""
    fields: tuple[str, ...] = ("vorticity",)

    @property
    def resolution(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.columns)


Part = Trajectories | Fields
"""Some samples of a file."""


class File:
    """A file of samples of a problem, by whichever reader it has."""

    def __init__(
        self, path: Path, problem: Problem, *, nu: float | None = None, resolution: int | None = None
    ) -> None:
        self.problem, self.stride, self.nu = problem, 1, None
        self.all: Part
        if problem.name == "navier-stokes":
            self.all = flow = open_trajectories(path, nu=nu)
            self.nu, self.stride = flow.nu, _stride(flow, resolution)
            line = torch.arange(0, flow.resolution, self.stride) / flow.resolution
            self.domain = Domain(line, line)
        else:
            self.all = made = open_fields(path)
            _check_problem(made, problem)
            self.domain = Domain(made.rows, made.columns, made.weights, tuple(made.names))
        if not problem.static and self.all.frames <= problem.frames_in:
            raise UserError(
                f"{path} has {self.all.frames} frames; "
                f"a forecast needs more than the {problem.frames_in} it starts from."
            )

    def load(self, part: Part) -> Samples:
        """All samples of a part at once."""
        if isinstance(part, Trajectories):
            fields = part.load()[:, :: self.stride, :: self.stride, :, None].contiguous()
        else:
            fields = part.load()
            if part.static:
                return Samples(part.load_inputs()[..., None, :], fields)
        frames = self.problem.frames_in
        return Samples(fields[..., :frames, :], fields[..., frames:, :])


class Split:
    """The first samples of a file to train on, those after them to validate on, the last to test on."""

    def __init__(self, config: DataConfig) -> None:
        self.config, self.problem = config, PROBLEMS[config.problem]
        train, val, test = config.num_train, config.num_val, config.num_test
        path = made_path(config) if config.data is None else config.data
        self.file = File(path, self.problem, nu=config.nu, resolution=config.resolution)
        everything: Any = self.file.all
        if config.data is None:  # a file with more samples serves as well; its first ones are these
            everything = everything.split(train + val + test, 0)[0]
        known, self.test = everything.split(train + val, test)
        self.train, self.validation = known.split(train, val)

    @property
    def domain(self) -> Domain:
        """Where the points lie."""
        return self.file.domain

    def load(self, part: Part) -> Samples:
        """All samples of a part at once, at the resolution asked for."""
        return self.file.load(part)

    def describe(self) -> dict[str, Any]:
        """What a run's manifest says of its data."""
        whole: dict[str, Any] = self.train.describe()
        del whole["samples"]
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        origin = "simulated" if self.config.data is None else "file"
        ranges = {name: [part.samples.start, part.samples.stop] for name, part in parts.items()}
        if "resolution" in whole:
            whole["resolution"] //= self.file.stride
        return {**whole, "origin": origin, "samples": ranges}


def made_path(config: DataConfig) -> Path:
    """The generated file of a problem, made now if it is missing."""
    problem = PROBLEMS[config.problem]
    generator = import_module(f"data.{problem.package}.generate")
    if problem.name == "navier-stokes":
        path: Path = generator.ensure(config.generation())
        return path
    options = import_module(f"data.{problem.package}.config").GenerateConfig
    samples = config.num_train + config.num_val + config.num_test
    resolution = {} if config.resolution is None else {"resolution": config.resolution}
    path = generator.ensure(options(num_samples=samples, **resolution))
    return path


def _check_problem(fields: Fields, problem: Problem) -> None:
    if fields.problem != problem.name:
        raise UserError(
            f"{fields.path} holds samples of {fields.problem}, not of {problem.name}; give another file or "
            f"--problem {fields.problem}."
        )


def _stride(trajectories: Trajectories, resolution: int | None) -> int:
    there = trajectories.resolution
    if resolution is None:
        return 1
    if there % resolution:
        raise UserError(
            f"--resolution {resolution} does not divide the {there} points of {trajectories.source.path}; "
            f"take {there} or a divisor of it."
        )
    return there // resolution
