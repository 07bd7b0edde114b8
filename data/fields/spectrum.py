"""How fields are spread over frequencies."""

import torch
from torch import Tensor


def shell_energies(fields: Tensor) -> Tensor:
    """The squares of the Fourier coefficients of fields (sample, row, column, ...), summed by whole wavenumber.

    (sample, shell, ...), as PDEBench counts: in a plane, shell k has the frequencies i, j >= 0, below half of the
    points of their axis, with k <= sqrt(i^2 + j^2) < k + 1, up to half of the shorter axis. On a line (one column),
    each frequency of the real transform is a shell.

    >>> x = torch.arange(8) / 8
    >>> shell_energies(torch.cos(2 * torch.pi * x)[None, :, None, None])[0, :, 0].round(decimals=4)
    tensor([ 0., 16.,  0.,  0.,  0.])
    """
    rows, columns = fields.shape[1:3]
    if columns == 1:
        return torch.fft.rfft(fields[:, :, 0], dim=1).abs().square()
    half, across = rows // 2, columns // 2
    energy = torch.fft.fft2(fields, dim=(1, 2))[:, :half, :across].abs().square()
    i, j = torch.arange(half, dtype=torch.float64), torch.arange(across, dtype=torch.float64)
    shell = (i[:, None].square() + j.square()).sqrt().floor().long()
    count = min(half, across)
    sums = energy.new_zeros(len(fields), count + 1, *fields.shape[3:])
    return sums.index_add(1, shell.clamp(max=count).flatten(), energy.flatten(1, 2))[:, :count]
