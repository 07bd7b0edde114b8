"""The knee, put together: which part covers which, what each looks like in both echoes."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from data.knee import bones as hard
from data.knee.lattice import Axes
from data.knee.shapes import Field, band, blend, coverage, ellipsoid
from data.knee.soft import EVERYWHERE, MUSCLES, NERVES, OUTLINE, TENDONS, VESSELS, Box, Rows
from data.knee.subject import Subject
from data.knee.tissue import TISSUES, Tissue, signal

LABELS: Final = tuple(TISSUES)
Shade = Field | float | tuple[Field | float, Field | float]
SKIN_MM: Final = 1.7


@dataclass
class Slab:
    """Both echoes (echo, x, y, z), real and without noise, and the tissue that fills most of each voxel."""

    echoes: NDArray[np.float32]
    labels: NDArray[np.uint8]


def subject_tissues(subject: Subject) -> dict[str, Tissue]:
    """The tissues of one subject: relaxation times, densities and fat suppression vary by some per cent."""
    rng = np.random.default_rng([subject.seed, 0x7469])
    varied = {}
    for name, tissue in TISSUES.items():
        t1, t2, factor = np.exp(rng.normal(0.0, (0.04, 0.07, 0.03)))
        density = tissue.density * factor * subject.traits.strength
        varied[name] = replace(tissue, t1=tissue.t1 * t1, t2=tissue.t2 * t2, density=density)
    return varied


class Painter:
    """Paints tissues over each other, in order; a later part hides an earlier one by its share of a voxel."""

    def __init__(self, shape: tuple[int, int, int], tissues: dict[str, Tissue]) -> None:
        self.echoes = np.zeros((2, *shape), np.float32)
        self.labels = np.zeros(shape, np.uint8)
        self.signals = {name: signal(tissue) for name, tissue in tissues.items()}

    def paint(self, tissue: str, level: Field, shade: Shade = 1.0, box: Box = EVERYWHERE) -> None:
        """Fill a level function with a tissue; `shade` scales its signal, per echo if there are two.

        Level and box have a row more at either end than the slab; shades cover the slab.
        """
        if level.shape[0] < 3:
            return
        share = coverage(level)
        if not share.any():
            return
        inner = (_without_ends(box[0], len(self.labels)), *box[1:])
        labels = self.labels[inner]
        labels[share > 0.5] = LABELS.index(tissue)
        shades = shade if isinstance(shade, tuple) else (shade, shade)
        for echo, strength, factor in zip(self.echoes, self.signals[tissue], shades, strict=True):
            painted = echo[inner]
            value = strength * (factor if isinstance(factor, float) else factor[inner])
            painted += share * (value - painted)


def _without_ends(rows: slice, count: int) -> slice:
    """The rows of the slab that coverage keeps of a box of rows of the slab with its two neighbours."""
    start, stop, _ = rows.indices(count + 2)
    return slice(start, stop - 2)


def render(subject: Subject, axes: Axes) -> Slab:
    """A slab of a knee on a grid of voxels; the same voxels come out whatever the slab."""
    shape = (len(axes[0].points), len(axes[1].points), len(axes[2].points))
    painter = Painter(shape, subject_tissues(subject))
    knee = Knee(subject, (axes[0].widened(), axes[1], axes[2]))
    for part in (knee.paint_muscles, knee.paint_joint, knee.paint_bones, knee.paint_cover):
        part(painter)
    return Slab(painter.echoes, painter.labels)


class Knee:
    """The parts of one knee on a slab with a row more at either end; textures (`noise`) cover the slab alone."""

    def __init__(self, subject: Subject, wide: Axes) -> None:
        self.traits = t = subject.traits
        self.x, self.y, self.z = subject.frame(wide)
        textures = {name: lattice.on(wide) for name, lattice in subject.textures.items()}
        self.noise = noise = {name: texture[1:-1] for name, texture in textures.items()}
        self.rows = Rows(self.x.mean(axis=(1, 2)), self.y, self.z)
        self.bones = hard.build_bones(self.x, self.y, self.z, t)
        self.thickness = np.float32(t.cartilage) * (1 + 0.08 * textures["patch"])
        self.leak = 1 + 0.14 * t.fat_leak * np.maximum(noise["leak"], -0.5)
        septa = np.exp(-((noise["septum"] / 0.12) ** 2)) * np.clip(0.5 + 0.5 * noise["patch"], 0.0, 1.0)
        self.fat = self.leak * (0.95 + 0.06 * noise["grain"] + 0.05 * noise["patch"] + 0.25 * septa)

    def paint_muscles(self, painter: Painter) -> None:
        """Fat everywhere, then muscles, nerves, vessels and tendons."""
        noise = self.noise
        painter.paint("fat", np.full_like(self.x, -100.0), self.fat)
        streaks = np.exp(-(((noise["fibre"] - 1.9) / 0.5) ** 2))
        flesh = 1 + 0.07 * noise["fibre"] + 0.05 * noise["patch"] - 0.35 * streaks
        for level, box in self.rows.all(MUSCLES, self.traits.muscle):
            painter.paint("fat", level - 0.8, 0.8, box)
            painter.paint("muscle", level, flesh, box)
        walls = (NERVES, "nerve", 0.5), (VESSELS, "blood", 0.6), (TENDONS, "tendon", 0.0)
        for table, tissue, wall in walls:
            for level, box in self.rows.all(table):
                if wall:
                    painter.paint("ligament", level - wall, 1.5, box)
                painter.paint(tissue, level, 1 + 0.03 * noise["grain"], box)

    def paint_joint(self, painter: Painter) -> None:
        """Fluid, ligaments, menisci and cartilage."""
        xyz, bones, noise, thickness = (self.x, self.y, self.z), self.bones, self.noise, self.thickness
        effusion, lift = self.traits.effusion, self.traits.patella_height
        film = 0.15 + 0.25 * effusion
        pouch = ellipsoid(*xyz, (-60.0 + lift, -35.0, 2.0), (20.0, 1.4 + 0.9 * effusion, 20.0))
        recess = ellipsoid(*xyz, (-4.0, 24.0, -14.0), (8.0, 2.0 + 1.0 * effusion, 8.0))
        cyst = ellipsoid(*xyz, (-10.0, 38.0, -14.0), (10.0 * effusion**0.5, 2.2 * effusion, 3.0 * effusion))
        coat = hard.femoral_cartilage(*xyz, bones, thickness)
        cap = hard.patellar_cartilage(*xyz, bones, thickness, self.traits)
        wet = np.minimum(np.minimum(coat - film, pouch), recess)
        wet = np.minimum(wet, cap - 0.8 * film)
        painter.paint("synovium", wet - 0.7, 0.6)
        painter.paint("fluid", wet, 0.95 + 0.04 * noise["patch"])
        if effusion > 1.2:
            painter.paint("fluid", cyst)

        fibres = 1 + 0.25 * noise["fibre"]
        front, back = hard.cruciate_ligaments(*xyz)
        painter.paint("synovium", np.minimum(front, back) - 0.5 - 0.4 * effusion, 0.8)
        painter.paint("ligament", front, 1.6 * fibres)
        painter.paint("ligament", back, 0.9 * fibres)
        painter.paint("meniscus", hard.menisci(*xyz, bones, thickness), 1 + 0.12 * noise["grain"])
        plateaus = hard.tibial_cartilage(*xyz, bones, thickness)
        for level, bone in ((plateaus, bones.tibia), (coat, bones.femur), (cap, bones.patella)):
            # Collagen shortens T2 towards the bone: deep cartilage is darker, more so in the second echo.
            depth = np.clip((bone / thickness)[1:-1], 0.0, 1.2)
            texture = 1 + 0.05 * noise["patch"]
            shades = (0.84 + 0.28 * depth) * texture, (0.62 + 0.62 * depth) * texture
            painter.paint("cartilage", level, shades)

    def paint_bones(self, painter: Painter) -> None:
        """Cortex, marrow, and the scars of the growth plates."""
        x, bones, noise = self.x, self.bones, self.noise
        height, growth = x[1:-1], 1.3 * noise["patch"]
        for bone, shaft, scar in (
            (bones.femur, 3.2 * hard.ramp(-x, 45.0, 75.0), -37.0),
            (bones.tibia, 3.0 * hard.ramp(x, 35.0, 65.0), 19.0),
            (bones.fibula, 1.2 * hard.ramp(x, 30.0, 50.0), 33.0),
            (bones.patella, np.float32(0.3), None),
        ):
            painter.paint("cortex", bone)
            inside = bone + 0.7 + shaft
            dense = np.exp(-np.maximum(-inside[1:-1], 0.0) / 3.0)
            marrow = self.leak * (1 + 0.20 * noise["trabecula"] + 0.08 * noise["patch"] - 0.30 * dense)
            if scar is not None:
                line = np.exp(-(((height - scar - growth) / 0.9) ** 2))
                line = line * np.clip(0.6 + 0.6 * noise["septum"], 0.0, 1.0)
                metaphysis = np.exp(-(((height - scar * 1.9) / 16.0) ** 2))
                patches = np.clip(noise["patch"] + 0.3 + 0.3 * noise["septum"], 0.0, 2.0)
                marrow = marrow * (1 - 0.4 * line) + 0.45 * self.traits.marrow_red * metaphysis * patches
            painter.paint("marrow", inside, np.maximum(marrow, 0.15))

    def paint_cover(self, painter: Painter) -> None:
        """Tendons in front, fascia, fat below the skin, skin, and the air around."""
        x, y, z, lift = self.x, self.y, self.z, self.traits.patella_height
        lower_pole, insertion = (-10.0 + lift, -51.5, 1.0), (40.0, -27.0, 1.0)
        patellar = band(x, y, z, lower_pole, insertion, radius=2.4, widen=5.5)
        quadriceps = band(x, y, z, (-44.0 + lift, -53.0, 1.0), (-140.0, -46.0, 0.0), radius=3.0, widen=5.0)
        over_patella = np.maximum(self.bones.patella - 1.3, y + 47.0)
        cord = 1 + 0.10 * self.noise["fibre"]
        for level in (quadriceps, patellar, over_patella):
            painter.paint("tendon", level, cord)

        outline = self.rows.tube(OUTLINE, crop=False)
        if outline is None:
            raise ValueError(
                f"the slab from x = {x.min():.0f} to {x.max():.0f} mm is outside the knee's model."
            )
        front = np.minimum(np.minimum(patellar, quadriceps), self.bones.patella - 1.5) - 1.0
        fascia = blend(outline[0], front, 24.0)
        uneven = 1 + 0.22 * np.tanh(-z / 30.0) + 0.15 * np.tanh(y / 40.0) + 0.25 * hard.ramp(-x, 10.0, 90.0)
        thinner = 1 - 0.45 * np.exp(-((np.maximum(front, 0.0) / 16.0) ** 2))
        skin = fascia - self.traits.fat * uneven * thinner
        painter.paint("tendon", -fascia, 1.2)
        painter.paint("fat", 0.7 - fascia, self.fat)
        painter.paint("skin", -(skin + SKIN_MM), 1 + 0.05 * self.noise["grain"])
        painter.paint("air", -skin)
