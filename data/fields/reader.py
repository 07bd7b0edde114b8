"""Open files of fields, whatever their format, as one type."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from data.fields.arrays import PlainArrays
from data.fields.containers import is_zarr
from data.fields.file import FieldsFile
from data.fields.fno_burgers import FnoBurgers
from data.fields.fno_darcy import FnoDarcy
from data.fields.fno_matlab import FnoMatlab
from data.fields.geometry import Geometry
from data.fields.layout import Array, Grid, Source
from data.fields.old_fields import OldFields
from data.fields.old_navier_stokes import OldNavierStokes
from data.fields.options import Told, words
from data.fields.pdebench import PdeBenchDarcy, PdeBenchFlow, PdeBenchGroups
from data.fields.the_well import TheWell
from data.fields.told import Retold
from lab.errors import UserError, readable

FORMATS: tuple[Any, ...] = (
    FieldsFile,
    OldFields,
    OldNavierStokes,
    FnoMatlab,
    FnoBurgers,
    FnoDarcy,
    PdeBenchFlow,
    PdeBenchDarcy,
    PdeBenchGroups,
    TheWell,
)
"""The known formats, each a `Source` with a test whether it `recognises` a path; the first that does reads the file.
What none of them recognises, and whatever a user tells the axes of, is read as plain arrays.

A format that is read into memory need not keep more than the samples and frames asked for."""


class Fields(Dataset[Tensor]):
    """The samples of a file, or some of them; item i is a tensor (row, column, frame, field), float32.

    Samples are read when they are asked for. Safe in DataLoader workers and picklable: every process opens the file
    for itself.

    Attributes:
        samples: the places in the file of these samples.
        frames: the number of frames of each.
        grid: where the points lie; its geometry is `geometry`.
        problem, names, inputs, constants, static, units, parameters, fingerprint: as in `data.fields.layout.Layout`.
    """

    def __init__(
        self, source: Source, samples: range | None = None, frames: int | None = None, stride: int = 1
    ) -> None:
        layout = source.layout
        self.source, self.path, self.stride = source, source.path, stride
        self.samples = range(len(source.samples)) if samples is None else samples
        self.frames = len(layout.times) if frames is None else frames
        self.problem, self.static, self.fingerprint = layout.problem, layout.static, layout.fingerprint
        self.names, self.inputs, self.constants = layout.names, layout.inputs, layout.constants
        self.parameters, self.units = layout.parameters, layout.units
        self.grid: Grid = layout.grid.every(stride)
        self._kept = layout.grid.kept(stride)
        self.times = layout.times[: self.frames]

    @property
    def geometry(self) -> Geometry:
        """The shape of the domain and its boundary."""
        return self.grid.geometry

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Tensor:
        return self.part(index, slice(self.frames))

    def part(self, index: int, frames: slice) -> Tensor:
        """Some frames of a sample, read without the others where the format allows it: (row, column, frame, field)."""
        chosen = range(self.frames)[frames]
        with readable(self.path):
            values = self.source.read(self.samples[index], slice(chosen.start, chosen.stop))
        return self._checked(index, values)

    @property
    def step_text(self) -> str:
        """The time between frames as a person says it, " of 0.05 s"; nothing where frames are only counted."""
        steps, unit = self.times.diff(), self.units.get("time", "")
        if len(steps) == 0 or not steps.allclose(steps[0]) or (float(steps[0]) == 1 and not unit):
            return ""
        return f" of {float(steps[0]):g} {unit}".rstrip()

    def labelled(self, name: str) -> str:
        """The name of a field, with its unit where it is known: "height (m)"."""
        return f"{name} ({self.units[name]})" if self.units.get(name) else name

    @property
    def nbytes(self) -> int:
        """The memory that all samples take at once."""
        points = len(self.grid.rows) * len(self.grid.columns)
        given = len(self.inputs) + len(self.constants)
        return 4 * len(self) * points * (self.frames * len(self.names) + given)

    def load(self) -> Tensor:
        """All samples at once: (sample, row, column, frame, field)."""
        values = torch.empty(len(self), *self.grid.resolution, self.frames, len(self.names))
        for i in range(len(self)):
            values[i] = self[i]
        return values

    def load_inputs(self) -> Tensor:
        """All inputs at once (sample, row, column, field): of a static problem, or the fields at the time 0."""
        if not self.inputs:
            raise UserError(
                f"{self.path} holds fields that change with time ({self.problem}) and no inputs beside them: "
                "its first frame is where they begin."
            )
        values = torch.empty(len(self), *self.grid.resolution, len(self.inputs))
        for i, sample in enumerate(self.samples):
            with readable(self.path):
                values[i] = self._checked(i, self.source.read_inputs(sample))
        return values

    def load_constants(self) -> Tensor:
        """All constants at once (sample, row, column, field); there may be none."""
        values = torch.empty(len(self), *self.grid.resolution, len(self.constants))
        for i, sample in enumerate(self.samples if self.constants else ()):
            with readable(self.path):
                values[i] = self._checked(i, self.source.read_constants(sample))
        return values

    def split(self, num_train: int, num_test: int) -> tuple["Fields", "Fields"]:
        """The first `num_train` samples to train on and the last `num_test` to test on."""
        if num_train + num_test > len(self):
            raise UserError(
                f"{self.path} offers {len(self)} samples, fewer than {num_train} to train on "
                f"and {num_test} to test on; ask for fewer or make more."
            )
        parts = self.samples[:num_train], self.samples[len(self) - num_test :]
        train, test = (Fields(self.source, samples, self.frames, self.stride) for samples in parts)
        return train, test

    def one(self, index: int) -> "Fields":
        """One of the samples."""
        return self.some(index, 1)

    def some(self, start: int, count: int) -> "Fields":
        """Up to so many of the samples, from one on."""
        return Fields(self.source, self.samples[start : start + count], self.frames, self.stride)

    def every(self, stride: int) -> "Fields":
        """The same samples on a coarser grid, every `stride`-th point of this one."""
        return Fields(self.source, self.samples, self.frames, self.stride * stride)

    def at_resolution(self, rows: int) -> "Fields":
        """The same samples on a coarser grid with so many rows."""
        there, possible = self.grid.resolution, self.grid.coarser
        if rows not in possible:
            several = ", ".join(str(count) for count in possible if count > 3)
            raise UserError(
                f"--resolution {rows} is not among the grids that every k-th of the {there[0]} x {there[1]} points of "
                f"{self.path} forms; possible are {several}."
            )
        return self.every(possible[rows])

    def expect(self, **parameters: float) -> None:
        """Refuse a file that is known to have been made with another value of a parameter."""
        for name, wanted in parameters.items():
            there = self.parameters.get(name)
            if there is not None and not np.isclose(wanted, there, rtol=1e-6, atol=0):
                raise UserError(
                    f"{self.path} has {name} = {there:g} where {wanted:g} was expected; give another file."
                )

    def describe(self) -> dict[str, Any]:
        """What the record of a run should say of its data."""
        return {
            "file": self.path.name,
            "fingerprint": self.fingerprint,
            "problem": self.problem,
            "parameters": self.parameters,
            "samples": [self.samples.start, self.samples.stop],
            "frames": self.frames,
            "grid": list(self.grid.resolution),
            "geometry": self.geometry.to_dict(),
            "fields": list(self.names),
            **({"constants": list(self.constants)} if self.constants else {}),
        }

    def _checked(self, index: int, values: Array) -> Tensor:
        values = values[self._kept]
        if not np.isfinite(values).all():
            raise UserError(
                f"{self.path}: sample {self.samples[index]} contains NaN or infinity; "
                "the file is damaged, make or copy it again."
            )
        return torch.from_numpy(np.ascontiguousarray(values))


def open_fields(
    path: str | Path, *, num_samples: int | None = None, frames: int | None = None, told: Told | None = None
) -> Fields:
    """Open a file of any known format and check it; `num_samples` and `frames` keep the first so many."""
    path = Path(path)
    if not path.is_file() and not is_zarr(path):
        raise UserError(f"there is no file {path}; make or fetch it first, or give another path.")
    with readable(path):
        source = _source(path, num_samples, frames, told or Told())
    counts = ("samples", num_samples, len(source.samples)), ("frames", frames, len(source.layout.times))
    for what, wanted, there in counts:
        if wanted is not None and wanted > there:
            raise UserError(f"{path} has {there} {what}, fewer than the {wanted} asked for; ask for {there}.")
    return Fields(source, None if num_samples is None else range(num_samples), frames)


def _source(path: Path, num_samples: int | None, frames: int | None, told: Told) -> Source:
    plain = told.axes or is_zarr(path)
    kind = None if plain else next((kind for kind in FORMATS if kind.recognises(path)), None)
    # Among plain arrays --fields has chosen already.
    chosen = [] if kind is None else words(told.fields)
    source: Source = PlainArrays(path, told) if kind is None else kind(path, num_samples, frames)
    more = told.sphere, told.boundaries, told.units, told.keeps, told.time_step, chosen
    return Retold(source, told, chosen) if any(more) else source
