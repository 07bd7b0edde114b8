"""Monarch compressed sensing: the sparsifying transform of an unrolled reconstruction is a Monarch that learns."""

from collections.abc import Iterator
from functools import partial
from math import log, sqrt
from typing import Literal

import torch
from torch import Tensor, nn

from data.scans.sense import Sense
from lab.errors import UserError
from monarch_core import Monarch, grid_dct
from mri.models.parts.acquired import on_acquired_grid
from mri.models.parts.method import Method, Rate, echoes_per_slice, sense_flops
from mri.models.parts.patches import PatchTransform

OUTER = 4
"""One in so many samples, those farthest from the centre of k-space, tell the noise level."""
THRESHOLD, AMOUNT, NOISE_SHARE = 0.4, 0.9, 0.5
"""Where the thresholds (for orthonormal patches), alpha and gamma start."""
LEAK, COUPLING = 0.01, 0.1
"""Share of their energy that coefficients in one row or column, and echoes of one slice, lend each other at first."""


class MonarchCS(Method):
    """Accelerated proximal gradient descent, unrolled, with A the measurement:

        r  = x~ + eta_k A^H (y - A x~)                      data
        x' = r - W_k^T phi_k(W_k r)                         shrinkage, x' the next x
        x~ = x' + beta_k (x' - x)                           momentum

        phi_k(z)_j = alpha_kj z_j (1 + e_j)^(-q_kj),        e_j = sum_i P_ji^2 |z_i|^2 / t_i^2
                                                            t_i = exp(theta_ki) L^gamma_i s^(1 - gamma_i)

    phi takes out of coefficient j what counts as noise: most of a small one, little of a large one. W_k cuts the image
    into overlapping patches, moved from iteration to iteration, and multiplies each by one Monarch matrix, which all
    iterations share and which starts at the 2-D DCT; its first coefficient, the mean, is kept. Real and
    imaginary part pass the same real W, and |z| is the magnitude of the complex coefficient. L is the noise level,
    the rms of the outer samples, and s the rms of the zero-filled image.

    An edge is in many coefficients of its patch at once. P, a second Monarch matrix that starts near the identity,
    pools their energy, so that a small coefficient counts as signal where its neighbours say so.

    So the method is equivariant to the scale and phase of the data, and takes every acceleration and matrix size. With
    8 iterations and patches of 8 x 8 it has 2 x 1,024 + 3 x 8 x 63 + 63 + 17 = 3,640 parameters.

    Echoes of a slice share their edges. With `joint_echoes` each adds to its energy the mean over the others of

        exp(kappa_j) (n / n')^delta_j e'_j,    n = L / s: the noise of the echo, n' that of the other,

    so that one with little noise tells where the edges of a noisy one are. That is 126 parameters more, for any number
    of echoes.

    Options:
        iterations: unrolled iterations.
        patch: side of the patches, even; neighbours are half a patch apart.
        transform: "learned", or "fixed" at the DCT.
        shrinkage: "power" learns the exponents q, from 1; "soft" fixes them to 1/2, close to soft thresholding.
        pooling: "learned", or "none": every coefficient on its own, P the identity.
        joint_echoes: reconstruct the echoes of a slice together.
        grid: "acquired" works on the grid without zero-padding, so that padded and other scans look alike.
    """

    any_plane = True
    decays_to_start = True

    def __init__(
        self,
        plane: tuple[int, int],
        density: Tensor | None = None,
        *,
        iterations: int = 8,
        patch: int = 8,
        transform: Literal["learned", "fixed"] = "learned",
        shrinkage: Literal["power", "soft"] = "power",
        pooling: Literal["learned", "none"] = "learned",
        joint_echoes: bool = False,
        grid: Literal["acquired", "stored"] = "acquired",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(plane, density)
        if patch % 2:
            raise UserError(f"--patch must be even, not {patch}: neighbouring patches overlap by half.")
        self.stride, self.grid, self.joins_echoes = patch // 2, grid, joint_echoes
        self.transform = grid_dct((patch, patch), norm="ortho", dtype=dtype)
        self.transform.requires_grad_(transform == "learned")
        self.pooling = _nearly_identity(patch, dtype) if pooling == "learned" else None
        rows = (iterations, patch**2 - 1)
        start = THRESHOLD * self.stride / patch  # as W is scaled
        self.theta = nn.Parameter(torch.full(rows, log(start), dtype=dtype))
        self.gamma = nn.Parameter(torch.full(rows[1:], NOISE_SHARE, dtype=dtype))
        self.alpha = nn.Parameter(torch.full(rows, AMOUNT, dtype=dtype))
        exponents = torch.full(rows, 1.0 if shrinkage == "power" else 0.5, dtype=dtype)
        self.q = nn.Parameter(exponents, requires_grad=shrinkage == "power")
        self.eta = nn.Parameter(torch.ones(iterations + 1, dtype=dtype))
        self.beta = nn.Parameter(torch.tensor(_momentum(iterations), dtype=dtype))
        if joint_echoes:
            self.kappa = nn.Parameter(torch.full(rows[1:], log(COUPLING), dtype=dtype))
            self.delta = nn.Parameter(torch.ones(rows[1:], dtype=dtype))

    def forward(self, kspace: Tensor, maps: Tensor, mask: Tensor, echo: Tensor) -> Tensor:
        reconstruct = partial(self.reconstruct, echoes=echoes_per_slice(echo) if self.joins_echoes else 1)
        if self.grid == "stored":
            return reconstruct(kspace, maps, mask)
        return on_acquired_grid(reconstruct, kspace, maps, mask)

    def reconstruct(self, kspace: Tensor, maps: Tensor, mask: Tensor, echoes: int = 1) -> Tensor:
        """The iterations, on the grid of what is given; every `echoes` consecutive slices are the echoes of one."""
        measure = Sense(maps, mask)
        zero_filled = measure.adjoint(kspace)
        # In units of s, where t = exp(theta) (L / s)^gamma.
        size = zero_filled.abs().square().mean((-2, -1)).sqrt().clamp_min(1e-30)
        zero_filled = zero_filled / size[:, None, None]
        noise = (noise_level(kspace, mask) / size).clamp_min(1e-6)
        pooling = None if self.pooling is None else self.pooling.to_dense()[1:, 1:].square()

        image = ahead = self.eta[0] * zero_filled
        for k, W in enumerate(self.patch_transforms((kspace.shape[-2], kspace.shape[-1]))):
            r = ahead + self.eta[k + 1] * (zero_filled - measure.normal(ahead))
            coefficients = W(torch.view_as_real(r).movedim(-1, 1))
            removed = W.adjoint(self.shrinkage(k, coefficients, noise, pooling, echoes))
            before, image = image, r - torch.complex(removed[:, 0], removed[:, 1])
            ahead = image + self.beta[k] * (image - before)
        return ahead * size[:, None, None]  # the last beta starts at 0: what is returned is the image itself

    def patch_transforms(self, plane: tuple[int, int]) -> Iterator[PatchTransform]:
        """W_1, W_2, ...: without the mean, and with patches at other places in each iteration."""
        # At this size one dense product is quicker than two factors.
        matrix = self.transform.monarch.to_dense()[1:]
        stride = self.stride
        for k in range(len(self.beta)):
            yield PatchTransform(plane, matrix, stride, (k % stride, (2 * k + k // stride) % stride))

    def shrinkage(
        self, k: int, coefficients: Tensor, noise: Tensor, pooling: Tensor | None = None, echoes: int = 1
    ) -> Tensor:
        """phi_k of coefficients (batch, 2, j, patches), real and imaginary; the noise level is one per slice.

        `pooling` are the squares P_ji^2, the identity when None.
        """
        log_t = self.theta[k] + self.gamma * noise.log()[:, None]
        energy = coefficients.square().sum(1) * (-2 * log_t).exp()[..., None]
        if pooling is not None:
            # In half the time that a plain product takes with its gradient.
            energy = torch.bmm(pooling.expand(len(energy), -1, -1), energy)
        if self.joins_echoes:
            energy = energy + self.lent(energy, noise, echoes)
        gain = self.alpha[k, :, None] * (-self.q[k, :, None] * energy.log1p()).exp()
        return coefficients * gain[:, None]

    def lent(self, energy: Tensor, noise: Tensor, echoes: int) -> Tensor:
        """What the other echoes of a slice add to the energy (batch, j, patches) of each."""
        by_slice = energy.unflatten(0, (-1, echoes))  # (slice, echo, j, patches)
        # exp(kappa) (n / n')^delta e' is a factor of the echo that takes times one of the echo that gives.
        ratio = self.delta * noise.log().view(-1, echoes, 1)
        given = by_slice * (-ratio).exp()[..., None]
        others = (given.sum(1, keepdim=True) - given) / max(echoes - 1, 1)  # a single echo is lent nothing
        return (others * (self.kappa + ratio).exp()[..., None]).flatten(0, 1)

    def rates(self) -> list[Rate]:
        """With --lr 1e-3: 1e-2 for the matrices, 5e-2 for what makes the thresholds, 2.5e-2 for the other scalars."""
        matrices = [
            *self.transform.parameters(),
            *(() if self.pooling is None else self.pooling.parameters()),
        ]
        joint = [self.kappa, self.delta] if self.joins_echoes else []
        return [
            Rate(10.0, matrices),
            Rate(50.0, [self.theta, self.gamma, *joint]),
            Rate(25.0, [self.alpha, self.q, self.eta, self.beta]),
        ]

    def flops(self, coils: int) -> int:
        with torch.no_grad():
            transforms = list(self.patch_transforms(self.plane))
        made = sum(2 * W.flops(2) for W in transforms)
        pooled = 0 if self.pooling is None else sum(2 * W.out_shape[0] * W.out_features for W in transforms)
        return (1 + 2 * len(self.beta)) * sense_flops(self.plane, coils) + made + pooled


def noise_level(kspace: Tensor, mask: Tensor) -> Tensor:
    """The rms of the outer samples, one number per slice; 0 where nothing was sampled.

    >>> kspace = torch.full((1, 2, 6, 4), 3.0 + 4.0j)
    >>> noise_level(kspace, torch.ones(1, 6, 4, dtype=torch.bool))
    tensor([5.])
    """
    ky, kz = ((torch.arange(n, device=mask.device) - n // 2) / (n / 2) for n in mask.shape[-2:])
    radius = torch.where(mask, torch.hypot(ky[:, None], kz), 0.0).flatten(1)
    last = mask.flatten(1).sum(1, keepdim=True) // OUTER
    edge = radius.sort(descending=True).values.gather(1, last)
    outer = mask.flatten(1) & (radius >= edge)
    power = kspace.abs().square()
    coils = (power.flatten(2).amax(2) > 0).to(power.dtype).mean(1)  # a batch gives some slices empty ones
    energy = power.mean(1).flatten(1) / coils.clamp_min(1e-6)[:, None]
    return ((energy * outer).sum(1) / outer.sum(1).clamp_min(1)).sqrt()


def _nearly_identity(patch: int, dtype: torch.dtype) -> Monarch:
    """The Monarch that mixes rows, then columns of a patch's coefficients, and at first hardly mixes them."""
    block = torch.full((patch, patch), sqrt(LEAK), dtype=dtype).fill_diagonal_(1.0)
    within_rows = block[None, :, None, :].expand(patch, -1, -1, -1)  # R (k, j, 1, i)
    across_rows = block[None, :, :, None].expand(patch, -1, -1, -1)  # L (j, l, k, 1)
    return Monarch.from_factors(within_rows, across_rows)


def _momentum(iterations: int) -> list[float]:
    """Nesterov's factors, 0 to begin with, and 0 at the end, where there is no next iteration to be ahead of."""
    factors, t = [], 1.0
    for _ in range(iterations - 1):
        t, before = (1 + sqrt(1 + 4 * t * t)) / 2, t
        factors.append((before - 1) / t)
    return [*factors, 0.0]
