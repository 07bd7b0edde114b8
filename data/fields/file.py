"""The one format for fields, written and read: HDF5.

    solution   float32 (samples, rows, columns, frames, fields)   one chunk per sample, with a checksum
    inputs     float32 (samples, rows, columns, fields)           where a layout has inputs
    constants  float32 (samples, rows, columns, fields)           where it has constants
    rows, columns   float64                                       coordinates of the points
    times      float64 (frames)

`inputs` of a static problem (Darcy flow) is what the solution answers, and there is one frame. `inputs` of a flow whose
frames begin after its start (Navier-Stokes: t = 1, 2, ...) is the field at the time 0. Other flows have none. A line is
a grid of one column.

Attributes of the file: `problem`; `names` and `inputs`, the fields of both data sets; `geometry`, as JSON, such as
{"kind": "box", "rows": "walls", "columns": "walls"}; `static`; `fingerprint`; `first_sample` and `num_samples`; where
there are any, `constants` (their names), `units` (JSON) and `symmetries`; and every parameter that decided the numbers,
under its own name.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import torch
from torch import Tensor

from data.fields.geometry import Geometry, from_dict
from data.fields.layout import EVERY, Array, Grid, Layout, Source
from data.hdf5 import Hdf5File, checked_storage, new_file
from lab.ending import let_signals_through
from lab.errors import UserError, readable
from lab.files import atomic_path, reserve

OWN = (
    "problem", "names", "inputs", "geometry", "static", "fingerprint", "first_sample", "num_samples", "constants",
    "units", "symmetries"
)  # fmt: skip
"""Attributes that are not parameters of the numbers."""

REQUIRED = {
    "problem": str, "names": list, "inputs": list, "fingerprint": str, "first_sample": int, "num_samples": int
}  # fmt: skip
"""Attributes that every file of fields has."""
OPTIONAL = {"constants": list, "units": str, "symmetries": list}


class Sample(NamedTuple):
    """What is written of a sample; inputs and constants where the layout names any."""

    inputs: Array | None
    solution: Array
    constants: Array | None = None


class FieldsFile(Source):
    """A file in this format, read sample by sample."""

    def __init__(self, path: Path, num_samples: int | None = None, frames: int | None = None) -> None:
        self.path, self._file = path, Hdf5File(path)
        found = self._file.attributes(REQUIRED, OPTIONAL)
        vectors = (self._file.vector(name) for name in ("rows", "columns", "times"))
        rows, columns, times = map(torch.from_numpy, vectors)
        inputs = tuple(found["inputs"])
        self.samples = range(found["first_sample"], found["first_sample"] + found["num_samples"])
        self.layout = Layout(
            problem=found["problem"],
            names=tuple(found["names"]),
            grid=Grid(self._geometry(found, rows), rows, columns),
            times=times,
            inputs=inputs,
            static=bool(found.get("static", inputs)),
            constants=tuple(found.get("constants", ())),
            units=self._units(found),
            symmetries=tuple(found.get("symmetries", ())),
            parameters={key: value for key, value in found.items() if key not in OWN},
            fingerprint=found["fingerprint"],
        )
        self._file.check("solution", "float32", (len(self.samples), *self.layout.shape))
        if inputs:
            self._file.check("inputs", "float32", (len(self.samples), *self.layout.input_shape))
        if self.layout.constants:
            self._file.check("constants", "float32", (len(self.samples), *self.layout.constant_shape))

    @staticmethod
    def recognises(path: Path) -> bool:
        """Whether the file is in this format."""
        return h5py.is_hdf5(path) and "geometry" in Hdf5File(path).attribute_names()

    def _units(self, attributes: dict[str, Any]) -> dict[str, str]:
        with readable(self.path, "the attribute 'units' should be a table of texts"):
            found = json.loads(attributes.get("units", "{}"))
            return {str(name): str(unit) for name, unit in found.items()}

    def _geometry(self, attributes: dict[str, Any], rows: Tensor) -> Geometry:
        try:
            return from_dict(json.loads(attributes["geometry"]))
        except (TypeError, ValueError, RecursionError, AttributeError) as error:
            raise UserError(f"{self.path}: the attribute 'geometry' tells none ({error}).") from error

    def read(self, index: int, frames: slice = EVERY) -> Array:
        """One chunk of the file."""
        return np.asarray(self._file.read("solution", (index, EVERY, EVERY, frames)))

    def read_inputs(self, index: int) -> Array:
        """One chunk of the file."""
        return np.asarray(self._file.read("inputs", index))

    def read_constants(self, index: int) -> Array:
        """One chunk of the file."""
        return np.asarray(self._file.read("constants", index))


def write(
    path: Path, layout: Layout, numbers: range, samples: Iterable[Sample | tuple[Array | None, Array]]
) -> None:
    """Write the samples of these numbers, given one by one, each a `Sample` or (inputs, solution)."""
    datasets: dict[str, tuple[int, ...]] = {"solution": layout.shape}
    datasets |= {"inputs": layout.input_shape} if layout.inputs else {}
    datasets |= {"constants": layout.constant_shape} if layout.constants else {}
    with atomic_path(path) as temporary:
        # Here, not after all samples have been computed and most of them written.
        reserve(temporary, 4 * len(numbers) * sum(int(np.prod(shape)) for shape in datasets.values()) + 2**16)
        with new_file(temporary) as file:
            file.attrs.update(layout.parameters)
            file.attrs["problem"], file.attrs["static"] = layout.problem, layout.static
            file.attrs["names"], file.attrs["inputs"] = list(layout.names), list(layout.inputs)
            file.attrs["geometry"] = json.dumps(layout.grid.geometry.to_dict())
            file.attrs["fingerprint"] = layout.fingerprint
            if layout.constants:
                file.attrs["constants"] = list(layout.constants)
            if layout.units:
                file.attrs["units"] = json.dumps(layout.units)
            if layout.symmetries:
                file.attrs["symmetries"] = list(layout.symmetries)
            file.attrs["first_sample"], file.attrs["num_samples"] = numbers.start, len(numbers)
            vectors = {"rows": layout.grid.rows, "columns": layout.grid.columns, "times": layout.times}
            for name, values in vectors.items():
                file.create_dataset(name, data=values, **checked_storage(values.shape))
            made = {}
            for name, one in datasets.items():
                made[name] = file.create_dataset(
                    name, (len(numbers), *one), **checked_storage((1, *one), "f4")
                )
            for i, sample in enumerate(samples):
                let_signals_through()
                for name, values in Sample(*sample)._asdict().items():
                    if values is not None:
                        made[name][i] = values


def holds(path: Path, fingerprint: str, numbers: range) -> bool:
    """Whether a generated file, of this format or an older one, has the samples of these numbers."""
    if not path.is_file():
        return False
    found = Hdf5File(path).attributes()
    return bool(
        found.get("fingerprint") == fingerprint
        and found["first_sample"] == numbers.start
        and found["num_samples"] >= len(numbers)
    )
