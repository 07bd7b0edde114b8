"""Which mask: kind, grid, acceleration and calibration region, checked before anything is made."""

from dataclasses import dataclass
from typing import Literal, get_args

from lab.errors import UserError

Kind = Literal["poisson", "random", "uniform", "lines"]
KINDS: tuple[str, ...] = get_args(Kind)
LINE_KINDS = ("uniform", "lines")

LOWEST_ACCELERATION = 1.5
TOLERANCE = 0.1


@dataclass(frozen=True)
class MaskSpec:
    """Masks of one kind on the grid that the scanner acquired, before zero-padding.

    - poisson: variable-density Poisson disc in (ky, kz), corners cropped.
    - random: points drawn uniformly in (ky, kz), corners cropped.
    - uniform: equispaced lines along kz, whole in ky, from a random offset (fastMRI's "equispaced").
    - lines: random lines along kz, whole in ky (fastMRI's "random").

    The acceleration is (points of the acquired grid) / (points sampled), calibration included. Without a
    given calibration region it is, for points, 24 x 24, but at most 30 % of either side, made even; for
    lines, a centre of 0.32 / acceleration of them, as in fastMRI (8 % at 4, 4 % at 8).

    >>> MaskSpec("poisson", (416, 80), 2).calibration_region
    (24, 24)
    >>> MaskSpec("poisson", (104, 40), 2).calibration_region
    (24, 12)
    """

    kind: Kind
    grid: tuple[int, int]
    acceleration: float
    calibration: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(f"there is no mask kind {self.kind!r}; choose one of {', '.join(KINDS)}.")
        if len(self.grid) != 2 or min(self.grid) < 8:
            raise UserError(f"a mask needs a grid of two sides of at least 8 points, not {self.grid}.")
        if not self.acceleration >= LOWEST_ACCELERATION:
            raise UserError(
                f"a {self.kind} mask needs an acceleration of at least {LOWEST_ACCELERATION}, not "
                f"{self.acceleration:g}; with less there is nothing to reconstruct."
            )
        if any(inner >= outer or inner < 1 for inner, outer in self._inner_sides()):
            raise UserError(
                f"a calibration region of {_by(self.calibration_region)} does not fit into a grid of "
                f"{_by(self.grid)}; choose a smaller one."
            )
        self._check_highest()

    @property
    def calibration_region(self) -> tuple[int, int]:
        """(ky, kz) points in the centre that every mask samples."""
        ky, kz = self.grid
        if self.calibration is not None:
            return self.calibration
        if self.kind in LINE_KINDS:
            return ky, max(1, round(0.32 * kz / self.acceleration))
        return min(24, 3 * ky // 10 // 2 * 2), min(24, 3 * kz // 10 // 2 * 2)

    @property
    def name(self) -> str:
        """The folder name of these masks' pool.

        >>> MaskSpec("poisson", (416, 80), 2).name
        'poisson_416x80_acc2_calib24x24'
        """
        grid, calibration = self.grid, self.calibration_region
        return (
            f"{self.kind}_{grid[0]}x{grid[1]}_acc{self.acceleration:g}_calib{calibration[0]}x{calibration[1]}"
        )

    @property
    def num_samples(self) -> int:
        """How many points the acceleration asks for."""
        return round(self.grid[0] * self.grid[1] / self.acceleration)

    def actual_acceleration(self, num_samples: int) -> float:
        """The acceleration of a mask with this many samples."""
        return self.grid[0] * self.grid[1] / num_samples

    def _inner_sides(self) -> list[tuple[int, int]]:
        sides = list(zip(self.calibration_region, self.grid, strict=True))
        return sides[1:] if self.kind in LINE_KINDS else sides

    def _check_highest(self) -> None:
        ky, kz = self.calibration_region
        highest = self.actual_acceleration(ky * kz)
        if self.acceleration > highest:
            raise UserError(
                f"acceleration {self.acceleration:g} is more than a {_by(self.grid)} grid allows: its "
                f"{ky} x {kz} calibration region alone is 1/{highest:.1f} of it. Ask for less, or make the "
                "calibration region smaller."
            )
        if self.kind in LINE_KINDS:
            kz = self.grid[1]
            nearest = kz / max(1, round(kz / self.acceleration))
            if abs(nearest - self.acceleration) >= TOLERANCE:
                raise UserError(
                    f"{kz} lines cannot be thinned to acceleration {self.acceleration:g}; the nearest is "
                    f"{nearest:.3f}. Ask for that, or for a mask of points."
                )


def _by(sides: tuple[int, int]) -> str:
    return f"{sides[0]} x {sides[1]}"
