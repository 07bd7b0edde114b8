"""Read generated fields: Darcy flow, Burgers flow between walls, shallow water on the sphere."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from data.hdf5 import Hdf5File
from lab.errors import UserError


class Fields:
    """The samples of a generated file, or some of them.

    Attributes:
        problem: "darcy", "burgers-walls" or "shallow-water".
        names: the fields of the solution, in the order of the last axis of `load`.
        static: whether an input has one solution (`load_inputs` gives the inputs); otherwise fields change with time.
        rows, columns: coordinates, x and y in [0, 1] or colatitude and longitude in radians.
        times: the times of the frames.
        weights: quadrature weights of the rows, of mean 1; None where all points weigh the same.
    """

    def __init__(self, file: Hdf5File, samples: range | None = None) -> None:
        self._file, self.path = file, file.path
        attributes = _checked_attributes(file)
        self.problem = str(attributes["problem"])
        self.names = [str(name) for name in attributes["names"]]
        self.fingerprint = str(attributes["fingerprint"])
        self.parameters = {key: _plain(value) for key, value in attributes.items()}
        there = int(attributes["num_samples"])
        self.samples = range(there) if samples is None else samples
        self.rows, self.columns, self.times = (self._vector(name) for name in ("rows", "columns", "times"))
        self.height, self.width, self.frames = len(self.rows), len(self.columns), len(self.times)
        self.weights = self._vector("weights").float() if "weights" in file else None
        self.static = len(attributes["inputs"]) > 0
        grid = (there, self.height, self.width)
        file.check("solution", "float32", (*grid, self.frames, len(self.names)))
        if self.static:
            file.check("inputs", "float32", (*grid, len(attributes["inputs"])))

    def __len__(self) -> int:
        return len(self.samples)

    def load(self) -> Tensor:
        """All solutions at once: (sample, row, column, frame, field), float32."""
        return self._load("solution")

    def load_inputs(self) -> Tensor:
        """All inputs at once: (sample, row, column, field), float32."""
        if not self.static:
            raise UserError(
                f"{self.path} holds fields that change with time ({self.problem}): their input is a frame of theirs, "
                "there are no others to load."
            )
        return self._load("inputs")

    def split(self, num_train: int, num_test: int) -> tuple["Fields", "Fields"]:
        """The first `num_train` samples to train on and the last `num_test` to test on."""
        if num_train + num_test > len(self):
            raise UserError(
                f"{self.path} offers {len(self)} samples, fewer than {num_train} to train on "
                f"and {num_test} to test on; ask for fewer or make more."
            )
        train, test = self.samples[:num_train], self.samples[len(self) - num_test :]
        return Fields(self._file, train), Fields(self._file, test)

    def describe(self) -> dict[str, Any]:
        """What a record of a run should say of its data."""
        return {
            "file": self.path.name,
            "fingerprint": self.fingerprint,
            "problem": self.problem,
            "samples": [self.samples.start, self.samples.stop],
            "frames": self.frames,
            "grid": [self.height, self.width],
            "fields": self.names,
        }

    def _load(self, name: str) -> Tensor:
        chosen = slice(self.samples.start, self.samples.stop)
        values = torch.from_numpy(np.asarray(self._file.read(name, chosen)))
        bad = ~torch.isfinite(values).flatten(1).all(1)
        if bad.any():
            first = self.samples[int(bad.int().argmax())]
            raise UserError(
                f"{self.path}: sample {first} contains NaN or infinity; the file is damaged, make it again."
            )
        return values

    def _vector(self, name: str) -> Tensor:
        return torch.from_numpy(np.asarray(self._file.read(name), dtype=np.float64))


def open_fields(path: str | Path) -> Fields:
    """Open a file made by `python -m data.darcy`, `data.burgers` or `data.shallow_water` and check it."""
    return Fields(Hdf5File(path))


def _checked_attributes(file: Hdf5File) -> dict[str, Any]:
    attributes = dict(file.file.attrs)
    needed = ("problem", "names", "inputs", "fingerprint", "num_samples")
    if any(name not in attributes for name in needed):
        held = ", ".join(sorted(file.file)) or "nothing"
        raise UserError(
            f"{file.path} is not a file of fields (it holds {held}); make one with python -m data.darcy, data.burgers "
            "or data.shallow_water."
        )
    return attributes


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
