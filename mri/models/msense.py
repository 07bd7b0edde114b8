"""mSENSE: SENSE whose inverse DFT is a learnable Monarch matrix."""

from typing import Literal, cast

import torch
from torch import Tensor, nn

from data.scans.sense import Sense, combine
from lab.errors import UserError
from monarch_core import LinearOperator, Monarch, Product, Separable, dft2, grid_dft
from mri.models.method import Method, sense_flops

Form = Literal["separable", "grid"]
Weights = Tensor | tuple[Tensor, Tensor]
"""Of the frequencies: (ky, kz), or one vector for each axis."""


class MSense(Method):
    """x = sum_c conj(S_c) M y_c with a Monarch M that starts at the centred orthonormal inverse DFT.

    One separable pair for all coils and echoes: on (512, 160) it has the paper's 57,472 parameters. Beyond
    the paper, each off by default:

        weights      start at M diag(weights), the density-compensated inverse DFT; the weights fold into the factors
        form="grid"  a block per row and per column, which can weight every frequency (ky, kz) by itself
        echoes=2     one Monarch for each echo
        steps=k      x <- x + sum_c conj(S_c) M (y - A x), k times from x = 0, A the measurement
        consistency  at the end x <- x + A^H (y - A x)
    """

    def __init__(
        self,
        plane: tuple[int, int],
        form: Form = "separable",
        echoes: int = 1,
        steps: int = 1,
        consistency: bool = False,
        weights: Weights | None = None,
        dtype: torch.dtype = torch.complex64,
    ) -> None:
        super().__init__(plane)
        self.steps, self.consistency = steps, consistency
        try:
            self.operators = nn.ModuleList(inverse_dft(plane, form, weights, dtype) for _ in range(echoes))
        except ValueError as error:
            raise UserError(
                f"mSENSE cannot be built for slices of {plane[0]} x {plane[1]}: {error}"
            ) from error

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        measure = Sense(maps, mask)
        image = self.combined(kspace, maps, echo)
        for _ in range(self.steps - 1):
            image = image + self.combined(kspace - measure(image), maps, echo)
        if self.consistency:
            image = image + measure.adjoint(kspace - measure(image))
        return image

    def combined(self, kspace: Tensor, maps: Tensor, echo: Tensor) -> Tensor:
        """sum_c conj(S_c) M y_c, with the Monarch of each slice's echo."""
        if len(self.operators) == 1:
            return combine(self.operators[0](kspace), maps)
        images = torch.empty_like(kspace)
        for number, operator in enumerate(self.operators):
            chosen = echo == number
            if chosen.any():
                images[chosen] = operator(kspace[chosen])
        return combine(images, maps)

    def flops(self, coils: int) -> int:
        operator = cast(LinearOperator, self.operators[0])
        combining = 8 * coils * operator.out_features
        once = operator.flops(coils) + combining
        return self.steps * once + 2 * (self.steps - 1 + self.consistency) * sense_flops(self.plane, coils)


def inverse_dft(
    plane: tuple[int, int], form: Form, weights: Weights | None, dtype: torch.dtype
) -> LinearOperator:
    """The centred orthonormal inverse DFT of a plane, times a diagonal of weights, as a trainable Monarch.

    >>> from data.scans.sense import ifft2c
    >>> u, v = torch.rand(6).double(), torch.rand(4).double()
    >>> y = torch.randn(6, 4, dtype=torch.complex128)
    >>> both = inverse_dft((6, 4), "separable", (u, v), torch.complex128), inverse_dft(
    ...     (6, 4), "grid", torch.outer(u, v), torch.complex128)
    >>> [torch.allclose(one(y), ifft2c(torch.outer(u, v) * y)) for one in both]
    [True, True]
    """
    if form == "grid":
        return _grid(plane, weights, dtype)
    operator = dft2(plane, inverse=True, norm="ortho", centered=True, dtype=torch.complex128)
    if weights is not None:
        if isinstance(weights, Tensor):
            raise ValueError("a separable Monarch takes one vector of weights for each axis.")
        axes = cast(list[LinearOperator], list(operator.axes))
        operator = Separable(*(_folded(axis, one) for axis, one in zip(axes, weights, strict=True)))
    return operator.to(dtype.to_real())


def _folded(axis: LinearOperator, weights: Tensor) -> LinearOperator:
    """A Monarch behind a permutation P: M P diag(w) = M diag(P w) P."""
    monarch, permutation = cast(Product, axis).links
    return cast(Monarch, monarch).scaled(right=permutation(weights.to(torch.complex128))) @ cast(
        LinearOperator, permutation
    )


def _grid(plane: tuple[int, int], weights: Weights | None, dtype: torch.dtype) -> LinearOperator:
    operator = grid_dft(plane, inverse=True, norm="ortho", centered=True, dtype=torch.complex128)
    if weights is not None:
        both = weights if isinstance(weights, Tensor) else torch.outer(*weights)
        # Row a of the grid is block a of R, so R[a, :, b] takes the weight of frequency (a, b) alone.
        operator.monarch = operator.monarch.scaled(right=both.to(torch.complex128).flatten())
    return operator.to(dtype.to_real())
