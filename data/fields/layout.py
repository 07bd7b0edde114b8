"""What is known of fields beside their values: where the points lie, and what the fields are."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from data.fields.geometry import Geometry
from lab.errors import UserError

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Grid:
    """The points of a geometry: coordinates of its rows and columns, float64."""

    geometry: Geometry
    rows: Tensor
    columns: Tensor

    @classmethod
    def of(cls, geometry: Geometry, rows: int, columns: int | None = None) -> "Grid":
        """The usual grid of so many points; without a number of columns, as many as rows, or one of a line."""
        if columns is None:
            columns = rows if "y" in geometry.axes else 1
        return cls(geometry, *geometry.coordinates(rows, columns))

    @property
    def resolution(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    @cached_property
    def weights(self) -> Tensor | None:
        """Quadrature weights of the rows, float32, of mean 1; None where all points weigh the same."""
        weights = self.geometry.weights(self.rows)
        return None if weights is None else weights.float()

    @property
    def positions(self) -> Tensor:
        """The distance of every point (row, column) from the nearest wall or, on the sphere, its latitude."""
        return self.geometry.positions(self.rows, self.columns)

    def kept(self, stride: int) -> tuple[slice, slice]:
        """The rows and columns that `every` keeps."""
        kept = self.geometry.every(stride, self.rows, self.columns)
        if kept is None:
            raise UserError(
                f"every {stride}-th of {len(self.rows)} x {len(self.columns)} points of {self.geometry} "
                "is not a grid of its kind; take all points."
            )
        return kept

    def every(self, stride: int) -> "Grid":
        """The coarser grid of the same kind that has every `stride`-th point."""
        rows, columns = self.kept(stride)
        return Grid(self.geometry, self.rows[rows], self.columns[columns])

    @property
    def coarser(self) -> dict[int, int]:
        """The strides that `every` takes, by the number of rows that they leave; the first is that of all points."""
        strides = range(1, len(self.rows) + 1)
        kept = {stride: self.geometry.every(stride, self.rows, self.columns) for stride in strides}
        return {len(self.rows[found[0]]): stride for stride, found in kept.items() if found is not None}


@dataclass(frozen=True, eq=False)
class Layout:
    """What a file says of its fields.

    Attributes:
        problem: the name of the equation, as in `pde.problems`.
        names: the fields, in the order of the last axis.
        times: the times of the frames.
        inputs: fields that are given apart from the frames: the input of a static problem, or the field at the time 0
            where the frames begin later.
        static: whether an input has one answer, instead of frames that follow each other.
        constants: fields that are given with every frame and stay as they are: coefficients of the equation, and
            numbers that a sample has, the same at every point. Those of a static problem are among its inputs.
        units: the unit of each field, of `time`, and of the axes `x` and `y`, by name, where they are known.
        symmetries: the moves that turn solutions into solutions, as a user writes them (see `options.Told.keeps`).
        parameters: everything that decided the numbers, by name.
        fingerprint: equal for two files exactly if sample i of one is sample i of the other.
        unsaid: the axes (x along rows, y along columns) of which the file does not say whether they are periodic;
            they count as walls until a user tells.
    """

    problem: str
    names: tuple[str, ...]
    grid: Grid
    times: Tensor
    inputs: tuple[str, ...] = ()
    static: bool = False
    constants: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    symmetries: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    unsaid: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The solution of a sample: rows, columns, frames, fields."""
        return *self.grid.resolution, len(self.times), len(self.names)

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """The inputs of a sample: rows, columns, fields."""
        return *self.grid.resolution, len(self.inputs)

    @property
    def constant_shape(self) -> tuple[int, int, int]:
        """The constants of a sample: rows, columns, fields."""
        return *self.grid.resolution, len(self.constants)


EVERY = slice(None)
"""All frames."""


class Source(ABC):
    """A file of samples in some format. Every process opens it for itself; it can be pickled."""

    path: Path
    layout: Layout
    samples: range
    """The samples of the data set that the file holds; a shard does not begin with 0."""

    @abstractmethod
    def read(self, index: int, frames: slice = EVERY) -> Array:
        """The solution (row, column, frame, field) of the sample at this place in the file; of these frames alone."""

    def read_inputs(self, index: int) -> Array:
        """Its inputs (row, column, field); only asked for where the layout names any."""
        raise NotImplementedError

    def read_constants(self, index: int) -> Array:
        """Its constants (row, column, field); only asked for where the layout names any."""
        raise NotImplementedError
