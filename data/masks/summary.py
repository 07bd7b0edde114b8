"""A pool of masks in words and in a picture."""

import statistics
from pathlib import Path

from data.masks.pool import MaskPool, density
from data.masks.spec import MaskSpec


def summarise(spec: MaskSpec, count: int, root: Path | None = None) -> str:
    """Fill the pool, then say how many masks it has and how close they come to the acceleration."""
    pool = MaskPool(spec, root)
    pool.training(count)
    accelerations = pool.accelerations(count)
    ky, kz = spec.calibration_region
    return (
        f"{pool.folder}: {count} masks, acceleration {statistics.fmean(accelerations):.3f} on average "
        f"({min(accelerations):.3f} to {max(accelerations):.3f}), calibration {ky} x {kz}"
    )


def draw_picture(spec: MaskSpec, count: int, root: Path | None, path: Path) -> Path:
    """Draw the first three masks and how often each point is sampled."""
    from lab import plot

    masks = MaskPool(spec, root).training(max(count, 3))
    ky, kz = spec.grid
    with plot.style():
        figure, axes = plot.figure(4, 1, width=6.0, height=6.0 * kz / ky + 0.3)
        for number in range(3):
            plot.show_image(axes[number, 0], masks[number].T, title=f"mask {number}", cmap=plot.IMAGE_MAP)
        drawn = plot.show_image(
            axes[3, 0],
            density(masks).T,
            title=f"density of {len(masks)} masks",
            cmap="viridis",
            vmin=0,
            vmax=1,
        )
        figure.colorbar(drawn, ax=axes[3, 0])
        return plot.save(figure, path)
