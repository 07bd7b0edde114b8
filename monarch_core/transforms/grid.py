"""The grid form: an h x w grid *is* the layout of a Monarch matrix, with a block per row and a block per column.

    z[a, j] = sum_b R[a, j, b] x[a, b]      each row a has its own matrix
    y[l, j] = sum_a L[j, l, a] z[a, j]      each column j has its own matrix

This is the Monarch convention itself with (k, i) = (row, column), so no permutation is needed. It contains the
two-dimensional Fourier, cosine and sine transforms, and the spherical harmonic transform, whose Legendre matrix
differs for every order m; once trained it is not separable.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, arange

from ..checks import pair, tensor, whole
from ..linear_operator import LinearOperator, arrow, checked_dtype, dtype_of
from ..monarch import Monarch
from .fourier import dft_spec
from .fourier_factors import root_of_unity
from .trigonometric import trigonometric_spec
from .twisted_dft import Norm

Keep = tuple[Sequence[int] | None, Sequence[int] | None]


class GridMonarch(LinearOperator):
    """A Monarch matrix on the last two axes: rows mix first, then columns (the other way with columns_first).

    Arguments:
        in_shape, out_shape: grids (h, w); out_shape defaults to in_shape. A smaller one truncates modes.
        rank: r matrices in parallel per row and column.
        columns_first: exchange the roles of rows and columns.

    >>> GridMonarch((8, 6), (5, 4))(torch.ones(3, 8, 6)).shape
    torch.Size([3, 5, 4])
    """

    def __init__(
        self,
        in_shape: tuple[int, int],
        out_shape: tuple[int, int] | None = None,
        rank: int = 1,
        *,
        columns_first: bool = False,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        h, w = pair(in_shape, "the grid of the input")
        h_out, w_out = (h, w) if out_shape is None else pair(out_shape, "the grid of the output")
        self.in_shape, self.out_shape, self.columns_first = (h, w), (h_out, w_out), columns_first
        blocks = (w, h_out) if columns_first else (h, w_out)
        self.monarch = Monarch(h * w, h_out * w_out, blocks, rank, dtype=dtype, device=device)

    @classmethod
    def from_tables(
        cls, rows: Tensor, columns: Tensor, *, columns_first: bool = False, dtype: torch.dtype | None = None
    ) -> GridMonarch:
        """The operator that applies `rows` to the rows of the grid and `columns` to its columns.

        Rows first: rows is (h, w_out, w), one matrix a row, or (w_out, w) for all; columns is (w_out, h_out, h)
        or (h_out, h). Columns first: columns is (w, h_out, h), rows is (h_out, w_out, w), or matrices for all.
        """
        first, second = (columns, rows) if columns_first else (rows, columns)
        R = first if first.ndim == 3 else first.expand(second.shape[-1], -1, -1)
        L = second if second.ndim == 3 else second.expand(R.shape[1], -1, -1)
        if (L.shape[0], L.shape[2]) != (R.shape[1], R.shape[0]):
            raise ValueError(
                "the tables of a grid operator do not fit: the first to act (a matrix per line) gives "
                f"{R.shape[1]} columns of {R.shape[0]}, the second has {L.shape[0]} matrices for {L.shape[2]}."
            )
        both = dtype_of(R, L)
        dtype = checked_dtype(dtype or both, both.is_complex, "this grid operator")
        K, J, I = R.shape
        in_shape, out_shape = ((I, K), (J, L.shape[1])) if columns_first else ((K, I), (L.shape[1], J))
        new = cls(in_shape, out_shape, columns_first=columns_first, dtype=dtype, device="meta")
        new.monarch = Monarch.from_factors(R[:, :, None].to(dtype), L[..., None].to(dtype))
        return new

    @property
    def dtype(self) -> torch.dtype:
        return self.monarch.dtype

    def flops(self, batch: int = 1) -> int:
        return self.monarch.flops(batch)

    def multiply(self, x: Tensor) -> Tensor:
        return self._unfold(self.monarch(self._fold(x)), self.out_shape)

    def multiply_adjoint(self, y: Tensor) -> Tensor:
        return self._unfold(self.monarch.adjoint(self._fold(y)), self.in_shape)

    def _fold(self, x: Tensor) -> Tensor:
        return (x.mT if self.columns_first else x).flatten(-2)

    def _unfold(self, y: Tensor, shape: tuple[int, ...]) -> Tensor:
        h, w = shape
        return y.reshape(*y.shape[:-1], w, h).mT if self.columns_first else y.reshape(*y.shape[:-1], h, w)

    def extra_repr(self) -> str:
        return f"{arrow(self)}, {'columns' if self.columns_first else 'rows'} first"


def grid_dft(
    shape: tuple[int, int],
    *,
    inverse: bool = False,
    norm: Norm | None = "backward",
    centered: bool = False,
    keep: Keep = (None, None),
    dtype: torch.dtype | None = None,
) -> GridMonarch:
    """The two-dimensional Fourier transform of an h x w grid, of any size, as one grid operator.

    `keep=(rows, columns)` lists the frequencies kept on each axis, negative ones counted from the end: the operator
    then maps the grid to those modes, and its inverse those modes to the grid.

    >>> grid_dft((64, 64), keep=(range(-12, 12), range(12)))
    GridMonarch(
      (64, 64) -> (24, 12), rows first
      (monarch): Monarch(4096 -> 288, blocks=(64, 12), rank=1, torch.complex64, 135,168 parameters)
    )
    """
    column, row = (dft_spec(n, inverse, norm, centered).dense() for n in pair(shape, "the grid"))
    return _separable_grid(column, row, keep, inverse, checked_dtype(dtype, True, "the Fourier transform"))


def grid_dct(
    shape: tuple[int, int],
    *,
    type: int = 2,
    inverse: bool = False,
    norm: Norm | None = "backward",
    keep: Keep = (None, None),
    dtype: torch.dtype | None = None,
) -> GridMonarch:
    """The two-dimensional cosine transform of an h x w grid, as scipy.fft.dctn (or idctn), as one grid operator."""
    column, row = (
        trigonometric_spec(n, type, norm, inverse, sine=False).dense() for n in pair(shape, "the grid")
    )
    return _separable_grid(column, row, keep, inverse, checked_dtype(dtype, False, "the cosine transform"))


def grid_dst(
    shape: tuple[int, int],
    *,
    type: int = 2,
    inverse: bool = False,
    norm: Norm | None = "backward",
    keep: Keep = (None, None),
    dtype: torch.dtype | None = None,
) -> GridMonarch:
    """The two-dimensional sine transform of an h x w grid, as scipy.fft.dstn (or idstn), as one grid operator."""
    column, row = (
        trigonometric_spec(n, type, norm, inverse, sine=True).dense() for n in pair(shape, "the grid")
    )
    return _separable_grid(column, row, keep, inverse, checked_dtype(dtype, False, "the sine transform"))


def grid_spherical(
    legendre: Tensor, longitudes: int, *, inverse: bool = False, dtype: torch.dtype | None = None
) -> GridMonarch:
    """The spherical harmonic transform of a latitude x longitude grid, as one grid operator.

    Forward, x (latitude, longitude) to coefficients (l, m): a Fourier transform of each row,
    2 pi / n sum_t x[t] exp(-i m phi_t), then for each order m the matrix legendre[m] (l, latitude), quadrature
    weights included. Inverse: for each m the matrix legendre[m] (latitude, l), then on each row
    c[m] exp(i m phi_t) with c = 1 for m = 0 and 2 for m > 0 (1 at the Nyquist order n / 2): the *real part* of the
    result is the field, because only orders m >= 0 of a real field are kept.
    """
    longitudes = whole(longitudes, "the number of longitudes", least=1)
    orders, t = arange(tensor(legendre, "the Legendre tables", axes=3).shape[0]), arange(longitudes)
    if len(orders) > longitudes // 2 + 1:
        raise ValueError(
            f"{longitudes} longitudes resolve orders 0 to {longitudes // 2}; got {len(orders)} Legendre tables."
        )
    dtype = checked_dtype(dtype or dtype_of(legendre, complex=True), True, "the spherical harmonic transform")
    waves = root_of_unity(orders[:, None] * t, longitudes)
    table = legendre.to(torch.complex128)
    if not inverse:
        return GridMonarch.from_tables(waves * (2 * torch.pi / longitudes), table, dtype=dtype)
    weight = torch.where((orders == 0) | (2 * orders == longitudes), 1.0, 2.0)
    return GridMonarch.from_tables(waves.conj().T * weight, table, columns_first=True, dtype=dtype)


def _separable_grid(
    column: Tensor, row: Tensor, keep: Keep, inverse: bool, dtype: torch.dtype
) -> GridMonarch:
    if not isinstance(keep, tuple) or len(keep) != 2:
        raise TypeError(
            f"keep is a pair of lists of frequencies, (rows, columns), or None for all; got {keep!r}."
        )
    kept = [
        matrix if chosen is None else _selected(matrix, list(chosen), inverse)
        for matrix, chosen in zip((column, row), keep, strict=True)
    ]
    return GridMonarch.from_tables(kept[1], kept[0], dtype=dtype)


def _selected(matrix: Tensor, frequencies: list[int], inverse: bool) -> Tensor:
    n = len(matrix)
    wrong = [f for f in frequencies if not -n <= f < n]
    if wrong:
        raise ValueError(f"an axis of {n} points has frequencies {-n} to {n - 1}; keep lists {wrong[0]}.")
    return matrix[:, frequencies] if inverse else matrix[frequencies]
