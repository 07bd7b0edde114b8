"""Options of `python -m data.masks`."""

from dataclasses import dataclass
from pathlib import Path

from data.masks.spec import Kind, MaskSpec


@dataclass(frozen=True)
class FillConfig:
    """A pool of masks: which, how many, where."""

    acc: float = 2.0
    """Acceleration relative to the acquired grid, 1.5 or more."""
    count: int = 1000
    """Training masks to have in the pool; those it has already are kept."""
    kind: Kind = "poisson"
    """poisson and random sample points, uniform and lines whole lines."""
    ky: int = 416
    """Points of the acquired grid along ky."""
    kz: int = 80
    """Points of the acquired grid along kz."""
    out: Path | None = None
    """Folder of the pools; by default masks/ in the data folder."""
    picture: Path | None = None
    """Also write a PNG of three masks and the sampling density."""

    @property
    def spec(self) -> MaskSpec:
        """The masks meant, checked."""
        return MaskSpec(self.kind, (self.ky, self.kz), self.acc)
