"""The receive coil array and the phase of the image: smooth complex fields over the field of view."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from data.knee.lattice import Axes, Lattice, spline_weights

Complex = NDArray[np.complex64]

SPACING_MM: Final = 8.0
HALF_EXTENT_MM: Final = (100.0, 100.0, 80.0)
WIRE_MM: Final = 12.0
SEGMENTS: Final = 40


class CoilArray:
    """Circular loops around the leg, in two rings; their fields by Biot and Savart.

    The static field points along x, so a loop with magnetic field B per unit current receives
    S = B_y - i B_z. The field is evaluated every 8 mm and joined by splines, which smooths it very slightly;
    a finite wire radius keeps it bounded at the wires, which lie outside the leg.
    """

    def __init__(self, rng: np.random.Generator, coils: int) -> None:
        per_ring = coils // 2
        points = tuple(np.arange(-h - SPACING_MM, h + 2.5 * SPACING_MM, SPACING_MM) for h in HALF_EXTENT_MM)
        self._first = [float(p[0]) for p in points]
        grid = np.stack(np.meshgrid(*points, indexing="ij"), axis=-1)
        fields = []
        for ring, x in enumerate((-42.0, 42.0)):
            for number in range(per_ring):
                angle = 2 * np.pi * (number + 0.5 * ring) / per_ring + rng.normal(0, 0.04)
                centre = np.array([x + rng.normal(0, 3), 102 * np.cos(angle), 94 * np.sin(angle)])
                normal = np.array([rng.normal(0, 0.05), np.cos(angle), np.sin(angle)])
                radius = (60.0 if per_ring <= 4 else 40.0) * rng.normal(1, 0.03)
                phase = np.exp(1j * rng.uniform(0, 2 * np.pi))
                fields.append(phase * loop_field(grid, centre, normal, radius))
        values = np.stack(fields)
        middle = tuple(n // 2 for n in values.shape[1:])
        scale = np.sqrt((np.abs(values[(slice(None), *middle)]) ** 2).sum())
        self.values = (values / scale).astype(np.complex64)

    def on(self, axes: Axes) -> Complex:
        """Sensitivities (coil, x, y, z); their root sum of squares is about 1 in the middle."""
        wx, wy, wz = (
            spline_weights(a, first + 1.5 * SPACING_MM, SPACING_MM, n)
            for a, first, n in zip(axes, self._first, self.values.shape[1:], strict=True)
        )
        coils, nx, ny, nz = self.values.shape
        along_x = (wx @ self.values.reshape(coils, nx, -1)).reshape(coils, -1, ny, nz)
        return (wy @ along_x) @ wz.T


def loop_field(
    grid: NDArray[np.float64], centre: NDArray[np.float64], normal: NDArray[np.float64], radius: float
) -> NDArray[np.complex128]:
    """B_y - i B_z of a loop: sum over its pieces dl of dl x r / (|r|^2 + w^2)^(3/2), up to a constant."""
    normal = normal / np.linalg.norm(normal)
    first = np.cross(normal, [1.0, 0.0, 0.0])
    first /= np.linalg.norm(first)
    second = np.cross(normal, first)
    field = np.zeros(grid.shape[:-1], np.complex128)
    for angle in 2 * np.pi * np.arange(SEGMENTS) / SEGMENTS:
        wire = centre + radius * (np.cos(angle) * first + np.sin(angle) * second)
        dl = radius * (np.cos(angle) * second - np.sin(angle) * first)
        r = grid - wire
        cube = ((r**2).sum(-1) + WIRE_MM**2) ** 1.5
        b_y = dl[2] * r[..., 0] - dl[0] * r[..., 2]
        b_z = dl[0] * r[..., 1] - dl[1] * r[..., 0]
        field += (b_y - 1j * b_z) / cube
    return field


class Phase:
    """The phase of the two echoes: off-resonance, opposite in sign in the second, and a smooth common part."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._drift = Lattice.draw(rng, (45.0, 45.0, 40.0))
        self._receive = Lattice.draw(rng, (60.0, 60.0, 60.0))

    def on(self, axes: Axes) -> Complex:
        """Unit complex numbers (echo, x, y, z)."""
        drift, receive = 0.6 * self._drift.on(axes), 0.7 * self._receive.on(axes)
        return np.exp(1j * np.stack([receive + drift, receive - drift])).astype(np.complex64)
