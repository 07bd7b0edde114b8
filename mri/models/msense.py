"""mSENSE: SENSE whose inverse DFT is a learnable Monarch matrix."""

from typing import Literal, Self, cast

import torch
from torch import Tensor, nn

from data.scans import sense_pairs
from data.scans.sense import combine
from lab.errors import UserError
from monarch_core import GridMonarch, LinearOperator, Monarch, Product, Separable, dft2, grid_dft, in_pairs
from mri.models.parts.method import Candidate, LearnedTransform, Method, sense_flops
from mri.models.parts.resampling import resampled

Form = Literal["separable", "grid"]
Weights = tuple[Tensor, Tensor]
"""Of the frequencies along ky and along kz."""


EXPONENTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Of the sampling density, to choose from where the start is density-compensated."""


class MSense(Method):
    """x = sum_c conj(S_c) M y_c with a Monarch M that starts at the centred orthonormal inverse DFT.

    One separable pair for all coils and echoes: on (512, 160) it has the paper's 57,472 parameters. Beyond
    the paper, each off by default:

        start="density"  start at M diag(u v), the density-compensated inverse DFT; u and v fold into the factors
        form="grid"      a block per row and per column, which can weight every frequency (ky, kz) by itself
        per_echo         one Monarch for the first echo and one for all that follow
        steps=k          x <- x + sum_c conj(S_c) M (y - A x), k times from x = 0, A the measurement
        consistency      at the end x <- x + A^H (y - A x)
        rank=r           M is a sum of r separable pairs, of which all but the first start at zero

    Slices of another size than the one it was built for meet M resampled (`parts/resampling.py`), unless form="grid".
    """

    not_in_pairs_because = None

    def __init__(
        self,
        plane: tuple[int, int],
        density: Tensor | None = None,
        *,
        start: Literal["idft", "density"] = "idft",
        form: Form = "separable",
        per_echo: bool = False,
        steps: int = 1,
        consistency: bool = False,
        rank: int = 1,
        decay_towards: Literal["start", "zero"] | None = None,
        dtype: torch.dtype = torch.complex64,
    ) -> None:
        super().__init__(plane, density)
        self.form, self.dtype, self.steps, self.consistency = form, dtype, steps, consistency
        if rank > 1 and form == "grid":
            raise UserError("--rank is a number of separable pairs; it does nothing with --form grid.")
        self.rank, self.any_plane = rank, form == "separable"
        self.decays_to_start = decay_towards == "start"
        self.candidates = EXPONENTS if start == "density" else ()
        try:
            self._start(None, 2 if per_echo else 1)
        except ValueError as error:
            raise UserError(
                f"mSENSE cannot be built for slices of {plane[0]} x {plane[1]}, since a Monarch matrix needs a size "
                "that is a product: pad k-space with zeros to sides that are no primes, or use --model mcs."
            ) from error

    def choose(self, candidate: Candidate, echo: int | None = None) -> None:
        """Start at the inverse DFT times the separable weights nearest to density^-candidate."""
        weights = separable_compensation(self.density, cast(float, candidate))
        self._start(weights, len(self.operators) // self.rank)

    def _start(self, weights: Weights | None, count: int) -> None:
        """`rank` operators for each of `count` echoes, one after the other."""
        operators = [
            inverse_dft(self.plane, self.form, weights, self.dtype) for _ in range(count * self.rank)
        ]
        for number, operator in enumerate(operators):
            if number % self.rank:
                with torch.no_grad():  # one factor alone, so that it has a gradient
                    next(operator.parameters()).zero_()
        self.operators = nn.ModuleList(operators)

    def _of_echo(self, number: int) -> list[LinearOperator]:
        """The operators whose sum is M for an echo."""
        every = cast(list[LinearOperator], list(self.operators))
        return every[number * self.rank : (number + 1) * self.rank]

    @property
    def learned_transform(self) -> LearnedTransform:
        operators = self._of_echo(0)
        return LearnedTransform(sum(operators[1:], operators[0]), frequency_weights(*operators))

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        measure = self.measurement(maps, mask)
        image = self.combined(kspace, maps, echo)
        for _ in range(self.steps - 1):
            image = image + self.combined(kspace - measure(image), maps, echo)
        if self.consistency:
            image = image + measure.adjoint(kspace - measure(image))
        return image

    def combined(self, kspace: Tensor, maps: Tensor, echo: Tensor) -> Tensor:
        """sum_c conj(S_c) M y_c, with the Monarch of each slice's echo."""
        if self.pairs is not None:
            return sense_pairs.combine(self._coil_images(kspace, echo), maps)
        if len(self.operators) == self.rank:
            return combine(self._applied(0, kspace), maps)
        images = torch.empty_like(kspace)
        count = len(self.operators) // self.rank
        for number in range(count):
            chosen = echo.clamp_max(count - 1) == number
            if chosen.any():
                images[chosen] = self._applied(number, kspace[chosen])
        return combine(images, maps)

    def _applied(self, number: int, kspace: Tensor) -> Tensor:
        """M y_c with the Monarch of an echo, at whatever size the k-space has."""
        operators, plane = self._of_echo(number), (kspace.shape[-2], kspace.shape[-1])
        if plane == self.plane or self.pairs is not None:
            first, *others = operators
            return sum((operator(kspace) for operator in others), start=first(kspace))
        images = torch.zeros_like(kspace)
        for operator in operators:
            axes = cast(list[LinearOperator], list(cast(Separable, operator).axes))
            rows, columns = (resampled(axis.to_dense(), n) for axis, n in zip(axes, plane, strict=True))
            images = images + rows @ kspace @ columns.mT
        return images

    def _coil_images(self, kspace: Tensor, echo: Tensor) -> Tensor:
        """M y_c in pairs. Every Monarch sees every slice, since a graph cannot know which slices have which echo."""
        images = self._applied(0, kspace)
        for number in range(1, len(self.operators) // self.rank):
            other = self._applied(number, kspace)
            images = torch.where((echo >= number)[:, None, None, None, None], other, images)
        return images

    def in_pairs(self) -> Self:
        made = super().in_pairs()
        made.operators = nn.ModuleList(in_pairs(cast(LinearOperator, each)) for each in self.operators)
        made.operators.requires_grad_(False)
        return made

    def flops(self, coils: int) -> int:
        operators = self._of_echo(0)
        combining = 8 * coils * operators[0].out_features
        once = sum(operator.flops(coils) for operator in operators) + combining
        return self.steps * once + 2 * (self.steps - 1 + self.consistency) * sense_flops(self.plane, coils)


def inverse_dft(
    plane: tuple[int, int], form: Form, weights: Weights | None, dtype: torch.dtype
) -> LinearOperator:
    """The centred orthonormal inverse DFT of a plane, times a diagonal of weights, as a trainable Monarch.

    >>> from data.scans.sense import ifft2c
    >>> u, v = torch.rand(6).double(), torch.rand(4).double()
    >>> y = torch.randn(6, 4, dtype=torch.complex128)
    >>> both = [inverse_dft((6, 4), form, (u, v), torch.complex128) for form in ("separable", "grid")]
    >>> [torch.allclose(one(y), ifft2c(torch.outer(u, v) * y)) for one in both]
    [True, True]
    """
    transform = grid_dft if form == "grid" else dft2
    plain = transform(plane, inverse=True, norm="ortho", centered=True, dtype=torch.complex128)
    operator = plain if weights is None else _weighted(plain, *(each.to(plain.dtype) for each in weights))
    return operator.to(dtype.to_real())


def _weighted(operator: GridMonarch | Separable, u: Tensor, v: Tensor) -> LinearOperator:
    """The operator times diag(u v), folded into its factors."""
    if isinstance(operator, GridMonarch):
        # Row a of the grid is block a of R, so R[a, :, b] takes the weight of frequency (a, b) alone.
        operator.monarch = operator.monarch.scaled(right=torch.outer(u, v).flatten())
        return operator
    axes = []
    for axis, weights in zip(operator.axes, (u, v), strict=True):
        monarch, permutation = cast(Product, axis).links  # M P diag(w) = M diag(P w) P
        axes.append(
            cast(Monarch, monarch).scaled(right=permutation(weights)) @ cast(LinearOperator, permutation)
        )
    return Separable(*axes)


def frequency_weights(*operators: LinearOperator) -> Tensor:
    """|M e_k| for every frequency k = (ky, kz): 1 for the orthonormal inverse DFT. Several operators are a sum.

    >>> torch.allclose(frequency_weights(inverse_dft((6, 4), "grid", None, torch.complex64)), torch.ones(6, 4))
    True
    """
    with torch.no_grad():
        if isinstance(operators[0], GridMonarch):
            R, L = operators[0].monarch.factors()
            return torch.einsum("ajb,ja->ab", R.abs().square().sum(2), L.abs().square().sum((1, 3))).sqrt()
        axes = [cast(Separable, operator).axes for operator in operators]
        rows, columns = (
            torch.stack([cast(LinearOperator, axis).to_dense() for axis in same])
            for same in zip(*axes, strict=True)
        )
        grams = (torch.einsum("rik,sik->rsk", each.conj(), each) for each in (rows, columns))
        return torch.einsum("rsy,rsz->yz", *grams).real.clamp_min(0).sqrt()


def separable_compensation(density: Tensor, exponent: float) -> tuple[Tensor, Tensor]:
    """The weights u (ky) and v (kz) whose product is nearest to density^-exponent, in double precision.

    Nearest in the logarithm, by least squares with each point counted as often as it is sampled; a density
    that is itself a product is met exactly.
    """
    counts = density.double()
    logarithm = torch.where(counts > 0, counts, 1.0).log() * -exponent
    rows, columns = counts.sum(1).clamp_min(1e-12), counts.sum(0).clamp_min(1e-12)
    v = torch.zeros_like(columns)
    u = torch.zeros_like(rows)
    for _ in range(200):  # alternating least squares; each sweep is an exact minimisation
        u = (counts * (logarithm - v)).sum(1) / rows
        v = (counts * (logarithm - u[:, None])).sum(0) / columns
    return u.exp(), v.exp()
