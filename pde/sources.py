"""The trajectories that a run trains, validates and tests on."""

from typing import Any

from torch import Tensor

from data.navier_stokes.reader import Trajectories, open_trajectories
from lab.errors import UserError
from pde.config import FRAMES_IN, DataConfig


class Split:
    """The first samples of a file to train on, those after them to validate on, the last to test on."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        train, val, test = config.num_train, config.num_val, config.num_test
        if config.data is None:
            from data.navier_stokes.generate import ensure

            made = ensure(config.generation())
            everything = open_trajectories(made, nu=config.nu, num_samples=train + val + test)
        else:
            everything = open_trajectories(config.data, nu=config.nu)
        if everything.frames <= FRAMES_IN:
            raise UserError(
                f"{everything.source.path} has {everything.frames} frames; "
                f"a forecast needs more than the {FRAMES_IN} it starts from."
            )
        known, self.test = everything.split(train + val, test)
        self.train, self.validation = known.split(train, val)
        self.stride = _stride(everything, config.resolution)

    def load(self, part: Trajectories) -> Tensor:
        """All samples of a part at once, as w[sample, x, y, frame], at the resolution asked for."""
        return part.load()[:, :: self.stride, :: self.stride].contiguous()

    def describe(self) -> dict[str, Any]:
        """What a run's manifest says of its data."""
        whole = self.train.describe()
        del whole["samples"]
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        origin = "simulated" if self.config.data is None else "file"
        ranges = {name: [part.samples.start, part.samples.stop] for name, part in parts.items()}
        whole["resolution"] //= self.stride
        return {**whole, "origin": origin, "samples": ranges}


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
