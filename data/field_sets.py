"""Make files of fields: their HDF5 layout, and the job that fills it.

    solution   float32 (samples, rows, columns, frames, fields)   one chunk per sample
    inputs     float32 (samples, rows, columns, fields)           only where the problem has one answer, no time
    rows, columns   float64                                       coordinates of the points
    times      float64 (frames)
    weights    float64 (rows)                                     quadrature, mean 1; absent on a uniform grid

The attributes of the file hold every parameter, the names of the fields, the version of the numbers and a
fingerprint.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from data import making
from data.field_config import FieldConfig, Settings
from data.generated import check_space
from data.making import Array, Job, cpu_count
from lab.files import atomic_path

Coordinates = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """What a file says of its fields. A sample is [row, column, frame, field], inputs before the solution."""

    names: tuple[str, ...]
    rows: Coordinates
    columns: Coordinates
    times: Coordinates
    inputs: tuple[str, ...] = ()
    weights: Coordinates | None = None
    at_once: int = 4
    """Samples that a process solves and stores at a time; no part of the file."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of a sample as the generator makes it."""
        return len(self.rows), len(self.columns), len(self.times), len(self.inputs) + len(self.names)


def ensure(config: FieldConfig, layout: Layout, solve: Callable[..., Array]) -> Path:
    """Return a file that holds these samples, making what is missing with a progress bar.

    A file of the same settings with more samples serves as well; its first ones are these.
    """
    name = config.settings.problem.replace("-", "_")
    return making.ensure(_job(config, layout, solve), f"{name}_*.h5")


def generate(config: FieldConfig, layout: Layout, solve: Callable[..., Array]) -> Path:
    """Make the file at `config.path`, or finish it, and return its path."""
    return making.make(_job(config, layout, solve))


def cell_centres(n: int) -> Coordinates:
    """The points (i + 1/2) / n: half a step from the walls, where the sines of a DST of type 2 vanish.

    >>> cell_centres(4)
    array([0.125, 0.375, 0.625, 0.875])
    """
    return (np.arange(n) + 0.5) / n


def _job(config: FieldConfig, layout: Layout, solve: Callable[[Any, list[int]], Array]) -> Job:
    settings, samples = config.settings, range(config.num_samples)
    return Job(
        path=config.path,
        fingerprint=settings.fingerprint,
        label=settings.problem,
        samples=samples,
        shape=layout.shape,
        solve=partial(solve, settings),
        write=partial(write_file, config.path, settings, layout, len(samples)),
        batch_size=layout.at_once,
        workers=config.workers or cpu_count(),
    )


def write_file(
    path: Path, settings: Settings, layout: Layout, num_samples: int, samples: Iterator[Array]
) -> None:
    """Write samples [row, column, frame, field], the inputs before the solution, one at a time."""
    rows, columns, frames, fields = layout.shape
    given = len(layout.inputs)
    with atomic_path(path) as temporary:
        check_space(temporary, 4 * num_samples * rows * columns * frames * fields)
        with h5py.File(temporary, "w") as file:
            file.attrs.update(settings.parameters)
            file.attrs["names"], file.attrs["inputs"] = list(layout.names), list(layout.inputs)
            file.attrs["fingerprint"] = settings.fingerprint
            file.attrs["first_sample"], file.attrs["num_samples"] = 0, num_samples
            file["rows"], file["columns"], file["times"] = layout.rows, layout.columns, layout.times
            if layout.weights is not None:
                file["weights"] = layout.weights / layout.weights.mean()
            chunk = (1, rows, columns, frames, fields - given)
            solution = file.create_dataset("solution", (num_samples, *chunk[1:]), "f4", chunks=chunk)
            if given:
                chunk_in = (1, rows, columns, given)
                inputs = file.create_dataset("inputs", (num_samples, *chunk_in[1:]), "f4", chunks=chunk_in)
            for i, sample in enumerate(samples):
                solution[i] = sample[..., given:]
                if given:
                    inputs[i] = sample[..., 0, :given]
