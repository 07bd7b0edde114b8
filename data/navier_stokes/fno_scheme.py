"""The time stepping of the FNO benchmark's generator, as published: the reference in tests and benchmarks.

Crank-Nicolson for the viscosity and forward Euler for advection and forcing, a fixed step of 1e-4, complex
FFTs, the 2/3 box mask on the advection term only. The released files were made with it on a 256 x 256 grid.
"""

import math

import torch
from torch import Tensor


def fno_scheme(initial: Tensor, forcing: Tensor, nu: float | Tensor, steps: int, dt: float = 1e-4) -> Tensor:
    """The vorticity w[..., x, y] after `steps` steps, in the precision of `initial`.

    `forcing` is f[x, y] on the same grid; `nu` may differ from sample to sample, as nu[sample, 1, 1].
    """
    grid = initial.shape[-1]
    k = grid * torch.fft.fftfreq(grid, dtype=initial.dtype, device=initial.device)
    kx, ky = 2 * math.pi * k[:, None], 2 * math.pi * k[None, :]
    laplacian = kx**2 + ky**2
    laplacian[0, 0] = 1.0
    kept = (k.abs() <= 2 / 3 * (grid // 2)).to(initial.dtype)
    mask = kept[:, None] * kept[None, :]
    explicit, implicit = 1 - 0.5 * dt * nu * laplacian, 1 + 0.5 * dt * nu * laplacian

    w = torch.fft.fft2(initial)
    f = torch.fft.fft2(forcing)
    for _ in range(steps):
        psi = w / laplacian
        u = torch.fft.ifft2(1j * ky * psi).real
        v = torch.fft.ifft2(-1j * kx * psi).real
        w_x = torch.fft.ifft2(1j * kx * w).real
        w_y = torch.fft.ifft2(1j * ky * w).real
        advection = mask * torch.fft.fft2(u * w_x + v * w_y)
        w = (dt * (f - advection) + explicit * w) / implicit
    return torch.fft.ifft2(w).real
