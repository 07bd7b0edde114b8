"""The grid form of the plane transform: every row and every kept column has its own matrix."""

import torch
from torch import Tensor, nn

from pde.models.legendre import Latitudes, legendre_functions, quadrature
from pde.models.plane import plane_flops
from pde.models.product import complex_product
from pde.models.resolution import Resolution, sides
from pde.models.transform import Axis, Start, stored


class GridPlane(nn.Module):
    """The plane transform as a Monarch matrix with free blocks (see `monarch_core.GridMonarch`), and its way back.

        z[a, k] = sum_t x[a, t] R[a, t, k]        a matrix for each row a
        f[l, k] = sum_a z[a, k] L[k, a, l]        a matrix for each kept column frequency k

    With `out` the way back leads to another grid. It starts at a separable transform, or at the spherical harmonic one,
    whose L differs from k to k; the shapes are the same for all starts. Unless it is to `learn`, it stays there.
    """

    def __init__(
        self,
        resolution: Resolution,
        modes: int,
        *,
        start: Start = "dft",
        learn: bool = True,
        out: Resolution | None = None,
        latitudes: Latitudes = "legendre-gauss",
    ) -> None:
        super().__init__()
        self.rows, self.columns = sides(resolution)
        self.out_rows, self.out_columns = sides(resolution if out is None else out)
        self.modes, self.start = modes, start
        if start == "sht":
            columns = legendre_start(self.rows, self.out_rows, modes, latitudes)
        else:
            columns = Axis(self.rows, modes, signed=True, start=start, out=self.out_rows).matrices()
        along: Start = "dft" if start == "sht" else start
        rows = Axis(self.columns, modes, signed=False, start=along, out=self.out_columns).matrices()
        self.blocks = {
            "R_forward": self.rows,
            "L_forward": modes,
            "L_back": modes,
            "R_back": self.out_rows,
        }
        starts = {"R_forward": rows[0], "L_forward": columns[0], "L_back": columns[1], "R_back": rows[1]}
        for name, matrix in starts.items():
            self.register_buffer(f"{name}_start", matrix, persistent=start == "random")
            if learn:
                change = torch.zeros(self.blocks[name], *matrix.shape[1:])
                self.register_parameter(f"{name}_change", nn.Parameter(change))

    @property
    def channel_matrices(self) -> int:
        """Modes, each of which mixes its channels by a matrix of its own."""
        return 2 * self.modes**2

    def _factor(self, name: str) -> Tensor:
        start, change = getattr(self, f"{name}_start"), getattr(self, f"{name}_change", None)
        if change is None:
            return torch.view_as_complex(start.expand(self.blocks[name], *start.shape[1:]))
        return torch.view_as_complex(start + change)

    def analyse(self, field: Tensor) -> Tensor:
        """Forward, rows first: (batch, x, y, channel) to (mode, channel, batch)."""
        batch, _, _, channels = field.shape
        rows = field.permute(1, 3, 0, 2).reshape(self.rows, channels * batch, self.columns)
        R = torch.view_as_real(self._factor("R_forward")).flatten(2)
        z = torch.view_as_complex(torch.bmm(rows, R).view(self.rows, channels * batch, self.modes, 2))
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
        return rows.view(self.out_rows, channels, batch, self.out_columns).permute(2, 0, 3, 1)

    def flops(self, channels: int) -> int:
        """Real operations of both directions and the mixing, for one field."""
        return plane_flops((self.rows, self.columns), self.modes, channels)


def legendre_start(rows: int, out: int, modes: int, latitudes: Latitudes) -> tuple[Tensor, Tensor]:
    """The Legendre matrices of the orders k < modes: forward (k, row, l) with the quadrature, back (k, l, out row).

    For order k the degrees are k ... k + 2 modes - 1, of which none is zero. The functions are orthonormal in the mean
    over the sphere, sum_a w_a P[l, a] P[l', a] = 1 for l = l' with weights of mean 1, so that both directions have the
    size of an orthonormal Fourier matrix and learn at the same pace.
    """
    highest = 3 * modes - 2
    if highest >= min(rows, out):
        raise ValueError(
            f"{modes} modes have spherical harmonics up to degree {highest}; "
            f"{min(rows, out)} latitudes resolve {min(rows, out) - 1}."
        )
    theta, weights = quadrature(latitudes, rows)
    there = _functions(theta, modes, rows) * (weights * rows / 2)
    back = _functions(quadrature(latitudes, out)[0], modes, rows)
    return stored(there.mT.to(torch.complex128)), stored(back.to(torch.complex128))


def _functions(theta: Tensor, modes: int, rows: int) -> Tensor:
    """Legendre functions (k, l, colatitude) in the units of a grid with so many rows."""
    return torch.stack([legendre_functions(k, 2 * modes, theta) for k in range(modes)]) * (2 / rows) ** 0.5
