"""The grid form of the plane transform: every row and every kept column has its own matrix."""

import torch
from torch import Tensor, nn

from pde.models.product import complex_product
from pde.models.transform import Axis, Start


class GridPlane(nn.Module):
    """The plane transform as a Monarch matrix with free blocks (see `monarch_core.GridMonarch`), and its way back.

        z[a, k] = sum_t x[a, t] R[a, t, k]        a matrix for each row a
        f[l, k] = sum_a z[a, k] L[k, a, l]        a matrix for each kept column frequency k

    It starts at the separable transform and is no longer separable once trained.
    """

    def __init__(self, n: int, modes: int, *, start: Start = "dft") -> None:
        super().__init__()
        self.n, self.modes, self.start = n, modes, start
        x = Axis(n, modes, signed=True, start=start)
        y = Axis(n, modes, signed=False, start=start)
        for name, axis, copies in (("R", y, n), ("L", x, modes)):
            for direction, matrix in zip(("forward", "back"), axis.matrices(), strict=True):
                self.register_buffer(f"{name}_{direction}_start", matrix, persistent=start == "random")
                change = torch.zeros(copies, *matrix.shape[1:])
                self.register_parameter(f"{name}_{direction}_change", nn.Parameter(change))

    def _factor(self, name: str) -> Tensor:
        return torch.view_as_complex(getattr(self, f"{name}_start") + getattr(self, f"{name}_change"))

    def analyse(self, field: Tensor) -> Tensor:
        """Forward, rows first: (batch, x, y, channel) to (mode, channel, batch)."""
        batch, n, _, channels = field.shape
        rows = field.permute(1, 3, 0, 2).reshape(n, channels * batch, n)
        R = torch.view_as_real(self._factor("R_forward")).flatten(2)
        z = torch.view_as_complex(torch.bmm(rows, R).view(n, channels * batch, self.modes, 2))
        f = complex_product(z.permute(2, 1, 0).contiguous(), self._factor("L_forward"))
        return f.permute(0, 2, 1).reshape(-1, channels, batch)

    def synthesise(self, modes: Tensor) -> Tensor:
        """Back, columns first: (mode, channel, batch) to (batch, x, y, channel)."""
        _, channels, batch = modes.shape
        f = modes.view(self.modes, -1, channels * batch).mT.contiguous()
        g = complex_product(f, self._factor("L_back")).permute(2, 1, 0).contiguous()
        R = self._factor("R_back")
        back = torch.stack((R.real, -R.imag), dim=2).flatten(1, 2)
        rows = torch.bmm(torch.view_as_real(g).flatten(2), back)
        return rows.view(self.n, channels, batch, self.n).permute(2, 0, 3, 1)

    def flops(self, channels: int) -> int:
        """Real operations of both directions, for one field."""
        n, m = self.n, self.modes
        return 2 * channels * (2 * n * n * 2 * m + 8 * m * n * 2 * m)
