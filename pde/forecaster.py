"""A model that takes one step, with what is needed to take many."""

from typing import Any

import torch
from torch import Tensor, nn

from lab.errors import UserError
from lab.weights import Weights
from pde.config import FRAMES_IN
from pde.models import build


class Forecaster(nn.Module):
    """Frames in, frames out: a network and the scaling of its recipe.

        next = last + s * net((frames - mean) / std)      residual
        next = mean + std * net((frames - mean) / std)    otherwise

    Without `normalise` (the fno recipe) mean is 0 and std is 1.
    """

    mean: Tensor
    std: Tensor
    change: Tensor

    def __init__(self, net: nn.Module, in_frames: int, residual: bool) -> None:
        super().__init__()
        self.net, self.in_frames, self.residual = net, in_frames, residual
        for name, value in (("mean", 0.0), ("std", 1.0), ("change", 1.0)):
            self.register_buffer(name, torch.tensor(value))

    def normalise_like(self, trajectories: Tensor) -> None:
        """Take mean and spread of the fields, and of their changes, from (sample, x, y, frame)."""
        self.mean, self.std = trajectories.mean(), trajectories.std()
        self.change = (trajectories[..., 1:] - trajectories[..., :-1]).std()

    def forward(self, frames: Tensor) -> Tensor:
        """The frame after (batch, x, y, in_frames): (batch, x, y, 1)."""
        out: Tensor = self.net((frames - self.mean) / self.std)
        if self.residual:
            return frames[..., -1:] + self.change * out
        return self.mean + self.std * out

    def rollout(self, first: Tensor, steps: int) -> Tensor:
        """The `steps` frames after the given ones (batch, x, y, >= in_frames), each made from those before it."""
        frames = first[..., -self.in_frames :]
        made = []
        for _ in range(steps):
            made.append(self(frames))
            frames = torch.cat((frames, made[-1]), dim=-1)[..., 1:]
        return torch.cat(made, dim=-1)

    def forecast(self, trajectory: Tensor) -> Tensor:
        """All frames after the first ten, from these ten: (batch, x, y, frames - 10)."""
        return self.rollout(trajectory[..., :FRAMES_IN], trajectory.shape[-1] - FRAMES_IN)

    def at_resolution(self, n: int) -> "Forecaster":
        """The same model on an n x n grid; only those whose transforms can be resampled have one."""
        there = self.net.resolution
        if n == there:
            return self
        reason = _not_resampled_because(self.net, n)
        if reason:
            raise UserError(
                f"the model was trained on {there} x {there} points and the data has {n} x {n}: {reason}; "
                "give data of the resolution it was trained on."
            )
        self.net.resampled(n)  # type: ignore[operator]
        return self


def _not_resampled_because(net: nn.Module, n: int) -> str | None:
    from pde.models.grid import GridPlane
    from pde.models.operator import SpectralOperator
    from pde.models.transform import Axis

    if not isinstance(net, SpectralOperator):
        return "a convolution's kernel belongs to one mesh width"
    if any(isinstance(module, GridPlane) for module in net.modules()):
        return "the grid form has a matrix for each row of its grid"
    axes = [module for module in net.modules() if isinstance(module, Axis)]
    if any(axis.start in ("dct", "dst") for axis in axes):
        return "transforms that began as cosines or sines are not periodic and cannot be resampled as such"
    if n < 2 * max(axis.modes for axis in axes):
        return f"{max(axis.modes for axis in axes)} modes need at least twice as many points"
    return None


def from_header(header: dict[str, Any]) -> Forecaster:
    """The forecaster that the header of a weights file describes, with fresh weights."""
    try:
        net = build(header["model"], header["in_frames"], header["resolution"], **header["options"])
        return Forecaster(net, header["in_frames"], header["residual"])
    except KeyError as error:
        raise UserError(
            f"the weights belong to {header.get('app', 'another program')}, not to pde."
        ) from error


def from_weights(weights: Weights, path: str = "the file") -> Forecaster:
    """The trained forecaster of a weights file."""
    forecaster = from_header(weights.header)
    weights.load_into(forecaster, path)
    return forecaster.eval()
