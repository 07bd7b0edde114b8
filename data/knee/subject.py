"""What differs between knees: size, pose, shape, composition and texture, all drawn from one seed."""

from dataclasses import dataclass

import numpy as np

from data.knee.lattice import Axes, Lattice
from data.knee.shapes import Field


@dataclass(frozen=True)
class Traits:
    """Measures of one knee; lengths in mm, angles in degrees, the rest relative to the average knee."""

    size: float
    flexion: float
    rotation: float
    tilt: float
    side: int
    offset: tuple[float, float, float]
    cartilage: float
    patella_height: float
    muscle: float
    fat: float
    effusion: float
    marrow_red: float
    fat_leak: float
    strength: float


def draw_traits(rng: np.random.Generator) -> Traits:
    """A knee from the population: about the ranges of adults lying in a knee coil."""
    return Traits(
        size=float(np.clip(rng.normal(0.97, 0.045), 0.87, 1.06)),
        flexion=float(rng.uniform(0.0, 9.0)),
        rotation=float(rng.normal(0.0, 4.0)),
        tilt=float(rng.normal(0.0, 2.0)),
        side=int(rng.choice((-1, 1))),
        offset=(float(rng.normal(0, 4.0)), float(rng.normal(0, 2.0)), float(rng.normal(0, 2.0))),
        cartilage=float(np.clip(rng.normal(2.4, 0.3), 1.5, 3.2)),
        patella_height=float(rng.normal(0.0, 3.0)),
        muscle=float(np.clip(rng.normal(1.12, 0.07), 0.92, 1.28)),
        fat=float(np.clip(rng.lognormal(np.log(6.0), 0.35), 3.0, 12.0)),
        effusion=float(np.clip(rng.lognormal(np.log(0.8), 0.6), 0.3, 3.0)),
        marrow_red=float(rng.uniform(0.3, 1.2)),
        fat_leak=float(rng.uniform(0.5, 1.5)),
        strength=float(rng.normal(1.0, 0.05)),
    )


class Subject:
    """One knee: its traits, its deformation and its textures, reproducible from the seed."""

    def __init__(self, seed: int) -> None:
        streams = iter(np.random.default_rng([seed, 0x6B6E6565]).spawn(16))
        self.seed = seed
        self.traits = draw_traits(next(streams))
        self.bend = [Lattice.draw(next(streams), (38.0, 38.0, 38.0)) for _ in range(3)]
        self.ripple = [Lattice.draw(next(streams), (11.0, 11.0, 11.0)) for _ in range(3)]
        self.textures = {
            "fibre": Lattice.draw(next(streams), (14.0, 1.7, 1.9)),
            "trabecula": Lattice.draw(next(streams), (2.0, 1.1, 1.1)),
            "patch": Lattice.draw(next(streams), (7.0, 7.0, 7.0)),
            "septum": Lattice.draw(next(streams), (7.0, 5.0, 6.0)),
            "grain": Lattice.draw(next(streams), (1.6, 1.6, 1.6)),
            "leak": Lattice.draw(next(streams), (60.0, 60.0, 50.0)),
        }

    def frame(self, axes: Axes) -> tuple[Field, Field, Field]:
        """Coordinates of the average knee at each voxel: pose, size and deformation undone."""
        t = self.traits
        x: Field = axes[0].points[:, None, None] - t.offset[0]
        y: Field = axes[1].points[:, None] - t.offset[1]
        z: Field = (axes[2].points - t.offset[2]) * t.side
        y, z = _turn(y, z, t.rotation)
        x, z = _turn(x, z, t.tilt)
        # Thigh and shank meet at an angle: only what lies above the joint turns, smoothly.
        above = 0.5 * (np.sqrt(x**2 + 15.0**2) - x)
        y = y - np.tan(np.deg2rad(t.flexion)) * above
        moved = []
        for c, bend, ripple in zip((x, y, z), self.bend, self.ripple, strict=True):
            shift = 1.6 * bend.on(axes) + 0.25 * ripple.on(axes)
            moved.append((c / t.size + shift).astype(np.float32))
        return moved[0], moved[1], moved[2]


def _turn(a: Field, b: Field, degrees: float) -> tuple[Field, Field]:
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return cos * a + sin * b, cos * b - sin * a
