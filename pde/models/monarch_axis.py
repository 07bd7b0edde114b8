"""The transform of an axis as Monarch matrices of the axis's own length: n = 64 points, 8 blocks of 8 x 8 twice."""

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from monarch_core import LinearOperator, Monarch, dct, dft, dst
from pde.models.transform import Axis, Start, frequencies, packed


class FromStart(nn.Module):
    """A factor as its start plus a trainable deviation, zero at first."""

    start: Tensor

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.register_buffer("start", start.clone(), persistent=False)

    def forward(self, change: Tensor) -> Tensor:
        return self.start + change

    def right_inverse(self, value: Tensor) -> Tensor:
        return value - self.start


class MonarchAxis(Axis):
    """An `Axis` whose full square transforms are Monarch operators; the kept frequencies are cut out of them."""

    def __init__(
        self,
        n: int,
        modes: int,
        *,
        signed: bool,
        start: Start = "dft",
        groups: int = 1,
        out: int | None = None,
    ) -> None:
        exact: Start = "dft" if start == "random" else start
        super().__init__(n, modes, signed=signed, start=exact, groups=groups, out=out)
        self.start = start
        self.there = nn.ModuleList(_operator(start, n, inverse=False) for _ in range(groups))
        self.home = nn.ModuleList(_operator(start, self.out, inverse=True) for _ in range(groups))

    def matrices(self) -> tuple[Tensor, Tensor]:
        there = torch.stack([operator.to_dense().T for operator in self.there])  # type: ignore[operator]
        home = torch.stack([operator.to_dense() for operator in self.home]) * self.stretch  # type: ignore[operator]
        if self.start in ("dct", "dst"):
            there, home = (packed(waves, self.modes, self.signed) for waves in (there, home))
            return _real_pairs(there), _real_pairs(home.mH)
        kept = frequencies(self.modes, self.signed)
        there, home = there[..., kept], home.mT[:, kept]
        if not self.signed:
            weight = torch.full((self.modes, 1), 2.0, device=home.device)
            weight[0] = 1.0
            home = home * weight
        return _real_pairs(there), _real_pairs(home)


def _operator(start: Start, n: int, inverse: bool) -> LinearOperator:
    if start == "random":
        return Monarch(n, dtype=torch.get_default_dtype().to_complex())
    if start == "dft":
        operator = dft(n, norm="ortho", inverse=inverse)
    else:
        operator = (dct if start == "dct" else dst)(n, norm="ortho", inverse=inverse)
    for monarch in [module for module in operator.modules() if isinstance(module, Monarch)]:
        for name in ("R", "L"):
            parametrize.register_parametrization(monarch, name, FromStart(getattr(monarch, name).detach()))
    return operator


def _real_pairs(matrix: Tensor) -> Tensor:
    return torch.view_as_real(matrix.resolve_conj().contiguous())
