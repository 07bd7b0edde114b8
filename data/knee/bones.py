"""The hard parts of the knee: femur, tibia, fibula, patella and the cartilage on them, as level functions.

Coordinates of the average adult knee in mm: x downwards, y backwards, z to the outer (lateral) side; the
origin is in the middle of the joint line.
"""

from dataclasses import dataclass

import numpy as np

from data.knee.shapes import Field, band, blend, carve, chain, ellipsoid, tube
from data.knee.subject import Traits


@dataclass(frozen=True)
class Bones:
    """Distances to the bones, and to the space between the condyles (the notch)."""

    femur: Field
    notch: Field
    tibia: Field
    fibula: Field
    patella: Field

    def nearest(self) -> Field:
        """Distance to the nearest bone."""
        return np.minimum(np.minimum(self.femur, self.tibia), np.minimum(self.fibula, self.patella))


def ramp(t: Field, start: float, end: float) -> Field:
    """0 before `start`, 1 after `end`, smooth between."""
    u = np.clip((t - start) / (end - start), 0.0, 1.0)
    return u * u * (3 - 2 * u)


def build_bones(x: Field, y: Field, z: Field, traits: Traits) -> Bones:
    """All bones on the grid of points (x, y, z)."""
    femur, notch = _femur(x, y, z)
    head = ellipsoid(x, y, z, (21.0, 21.0, 33.0), (10.0, 9.5, 8.5))
    fibula = blend(head, band(x, y, z, (26.0, 21.0, 33.0), (140.0, 16.0, 30.0), radius=6.0), 6.0)
    return Bones(femur, notch, _tibia(x, y, z), fibula, _patella(x, y, z, traits))


def _femur(x: Field, y: Field, z: Field) -> tuple[Field, Field]:
    flare = ramp(x, -95.0, -30.0)
    centre, semi_axes = (-13.0 + 9.0 * flare, 0.0 * flare), (14.0 + 9.0 * flare, 15.0 + 23.0 * flare)
    shaft = tube(y, z, centre, semi_axes, power=2.4)
    shaft = np.maximum(shaft, x + 24.0)
    body = blend(shaft, ellipsoid(x, y, z, (-31.0, -12.0, 0.0), (21.0, 19.0, 32.0)), 9.0)
    for side, reach in ((-1.0, 1.0), (1.0, 0.0)):
        distal = ellipsoid(x, y, z, (-26.5 + reach, -3.0, side * 22.0), (24.0, 28.0, 15.5))
        posterior = ellipsoid(x, y, z, (-22.0 + reach, 13.5, side * 23.0), (20.0, 20.0, 13.5))
        body = blend(body, blend(distal, posterior, 7.0), 7.0)
    groove = band(x, y, z, (-62.0, -42.0, 1.0), (-6.0, -38.0, 0.0), radius=10.0)
    body = carve(body, groove, 9.0)
    # The roof of the notch (Blumensaat's line) rises backwards.
    slope = 0.75
    u, v = x + slope * (y + 10.0), y
    notch = np.maximum(ellipsoid(u, v, z, (6.0, 22.0, 0.0), (21.0, 33.0, 9.5)), -12.0 - y)
    return carve(body, notch, 5.0), notch


def _tibia(x: Field, y: Field, z: Field) -> Field:
    taper = ramp(x, -2.0, 72.0)
    centre, semi_axes = (1.5 - 5.0 * taper, -2.0 * taper), (26.0 - 11.5 * taper, 38.5 - 23.0 * taper)
    wall = tube(y, z, centre, semi_axes, power=2.6)
    hollow = 2.0 * np.exp(-(((z + 21.0) / 13.0) ** 2 + ((y - 1.0) / 18.0) ** 2))
    spines = 8.5 * np.exp(-(((np.abs(z) - 5.5) / 4.0) ** 2) - ((y - 3.0) / 9.0) ** 2)
    top = (3.6 + 0.11 * y + hollow - spines - x) * 0.95
    body = -blend(-wall, -top, 5.0)
    tuberosity = ellipsoid(x, y, z, (37.0, -19.0, 1.0), (15.0, 7.0, 9.0))
    crest = band(x, y, z, (40.0, -15.0, 1.0), (140.0, -16.0, -2.0), radius=5.0)
    return blend(blend(body, tuberosity, 7.0), crest, 8.0)


def _patella(x: Field, y: Field, z: Field, traits: Traits) -> Field:
    u = x - traits.patella_height
    tip = 1.0 - 0.25 * ramp(u, -22.0, -6.0)
    outer = ellipsoid(u, y, z / tip, (-28.0, -46.0, 1.0), (21.0, 11.5, 22.0))
    facets = y + 36.2 + 0.42 * np.sqrt((z - 1.0) ** 2 + 9.0) + 0.10 * np.maximum(u + 20.0, 0.0)
    return -blend(-outer, -facets * 0.9, 4.0)


def femoral_cartilage(x: Field, y: Field, z: Field, bones: Bones, thickness: Field) -> Field:
    """The coat of the condyles and of the groove; none on the roof of the notch, the sides, the shaft."""
    limit = -47.0 + 14.0 * ramp(y, -28.0, 26.0) + 12.0 * ramp(np.abs(z), 14.0, 26.0) * ramp(-y, 0.0, 20.0)
    thinner = thickness * ramp(x - limit, -1.0, 8.0)
    coat = bones.femur - thinner
    edge = np.maximum(np.abs(z) - 34.0, limit - x)
    edge = np.maximum(edge, 1.5 - bones.notch)
    return np.maximum(coat, edge)


def tibial_cartilage(x: Field, y: Field, z: Field, bones: Bones, thickness: Field) -> Field:
    """The two plateaus."""
    coats = []
    for side in (-1.0, 1.0):
        radius = np.sqrt(((y - 1.0) / 23.0) ** 2 + ((z - side * 21.5) / 15.0) ** 2)
        thinner = 1.1 * thickness * (1 - ramp(radius, 0.75, 1.08))
        coats.append(np.maximum(bones.tibia - thinner, (radius - 1.05) * 14.0))
    return np.maximum(np.minimum(coats[0], coats[1]), x - 12.0)


def patellar_cartilage(x: Field, y: Field, z: Field, bones: Bones, thickness: Field, traits: Traits) -> Field:
    """The back of the patella, thickest in the middle."""
    u = x - traits.patella_height
    radius = np.sqrt(((u + 30.0) / 18.0) ** 2 + ((z - 1.0) / 20.0) ** 2)
    coat = bones.patella - 1.35 * thickness * (1 - ramp(radius, 0.55, 1.05))
    return np.maximum(coat, -46.0 - y)


def menisci(x: Field, y: Field, z: Field, bones: Bones, thickness: Field) -> Field:
    """Wedges that fill the gap between the cartilages around the rim of each plateau, open to the middle."""
    gap = np.maximum(1.15 * thickness - bones.tibia, thickness + 0.3 - bones.femur)
    both = []
    for side, (length, width) in ((-1.0, (26.5, 19.0)), (1.0, (23.0, 18.5))):
        radius = np.sqrt(((y - 1.0) / length) ** 2 + ((z - side * 21.0) / width) ** 2)
        ring = np.maximum((radius - 1.0) * 18.0, (0.52 - radius) * 18.0)
        opening = 7.0 - side * z
        both.append(np.maximum(ring, opening))
    height = np.maximum(bones.femur + bones.tibia - 13.0, np.abs(x - 1.5) - 8.0)
    return np.maximum(np.maximum(np.minimum(both[0], both[1]), gap), height)


def cruciate_ligaments(x: Field, y: Field, z: Field) -> tuple[Field, Field]:
    """Anterior and posterior cruciate ligament."""
    anterior = band(x, y, z, (-23.0, 14.0, 6.5), (-1.0, -9.0, -1.0), radius=4.2)
    path = [(-13.0, -3.0, -6.0), (-14.5, 10.0, -3.0), (-8.0, 20.0, -1.0), (12.0, 27.0, 0.0)]
    return anterior, chain(x, y, z, path, radius=4.6)
