"""Energy, enstrophy and energy spectrum of vorticity fields on the unit torus."""

import math

import torch
from torch import Tensor

from data.fields.reader import Fields
from data.navier_stokes.config import Flow
from lab.errors import UserError
from lab.table import Column, Table


def energy_modes(w: Tensor) -> tuple[Tensor, Tensor]:
    """The energy |w_k|² / (2 |2 pi k|²) of every mode of w[..., x, y], and |k|; both over (kx, ky) in FFT order."""
    kx, ky = (n * torch.fft.fftfreq(n, dtype=torch.float64, device=w.device) for n in w.shape[-2:])
    magnitude = torch.hypot(kx[:, None], ky[None, :])
    coefficients = torch.fft.fft2(w.double(), norm="forward").abs() ** 2
    modes = coefficients / (2 * (2 * math.pi * magnitude.clamp(min=0.5)) ** 2)
    modes[..., 0, 0] = 0.0  # the mean vorticity of a periodic flow is zero
    return modes, magnitude


def energy(w: Tensor) -> Tensor:
    """Half the mean of u² + v², for each field w[..., x, y].

    >>> x = torch.arange(16, dtype=torch.float64) / 16
    >>> w = 2 * math.pi * torch.cos(2 * math.pi * x)[:, None].expand(16, 16)  # v = sin 2 pi x, u = 0
    >>> round(float(energy(w)), 12), round(float(enstrophy(w)), 6) == round(math.pi**2, 6)
    (0.25, True)
    """
    return energy_modes(w)[0].sum((-1, -2))


def enstrophy(w: Tensor) -> Tensor:
    """Half the mean of w², for each field w[..., x, y]."""
    return w.double().square().mean((-1, -2)) / 2


def spectrum(w: Tensor) -> Tensor:
    """Energy in the shells |k| = 0, 1, ..., n/2 (nearest whole number) on a new last axis; n is the shorter side's."""
    modes, magnitude = energy_modes(w)
    beyond = min(w.shape[-2:]) // 2 + 1
    shells = magnitude.round().long().clamp(max=beyond).flatten()
    sums = torch.zeros(*w.shape[:-2], beyond + 1, dtype=torch.float64, device=w.device)
    return sums.index_add(-1, shells, modes.flatten(-2))[..., :-1]


def summary(flows: Fields, frames: list[int]) -> Table:
    """Means over all samples at some frames."""
    if flows.problem != Flow.problem:
        raise UserError(
            f"{flows.path} holds samples of {flows.problem}, not of {Flow.problem}; "
            f"draw it with: python -m data.fields show {flows.path}"
        )
    digits = {"time": 0, "energy": 5, "enstrophy": 4, "max |w|": 3, "peak |k|": 0, "mean |k|": 2}
    columns = [Column(title, digits=number) for title, number in digits.items()]
    table, values = Table([*columns, Column("energy beyond n/3")]), flows.load()[..., 0]
    for frame in frames:
        w = values[..., frame]
        shells = spectrum(w).mean(0)
        k, share = torch.arange(len(shells)), shells / shells.sum()
        means = float(energy(w).mean()), float(enstrophy(w).mean())
        peak, mean, beyond = int(share.argmax()), float((k * share).sum()), share[k > w.shape[-1] / 3].sum()
        time, largest = float(flows.times[frame]), float(w.abs().max())
        table.add(time, *means, largest, peak, mean, f"{float(beyond):.1e}")
    return table
