"""Look at a file: a contact sheet, an animation, and its energy, enstrophy and spectrum."""

from pathlib import Path

import numpy as np
from torch import Tensor

from data.navier_stokes.config import ShowConfig
from data.navier_stokes.diagnostics import energy, enstrophy, spectrum
from data.navier_stokes.reader import Trajectories, open_trajectories
from lab import plot
from lab.console import say
from lab.errors import UserError
from lab.files import atomic_path
from lab.table import Column, Table


def show(config: ShowConfig) -> list[Path]:
    """Write `<file>.png` and `<file>.gif`, print the summaries, return the paths."""
    if config.samples < 1 or config.frames < 1:
        raise UserError(
            f"--samples and --frames must be 1 or more, not {config.samples} and {config.frames}."
        )
    trajectories = open_trajectories(config.file)
    chosen = min(config.samples, len(trajectories))
    w = Trajectories(trajectories.source, trajectories.samples[:chosen], trajectories.frames).load()
    folder = config.out or config.file.parent
    nu = "unknown" if trajectories.nu is None else f"{trajectories.nu:g}"
    say(
        f"{config.file.name}: {len(trajectories)} samples of {trajectories.frames} frames, "
        f"{trajectories.resolution} x {trajectories.resolution}, viscosity {nu}; the first {chosen} follow"
    )
    times = (
        np.linspace(0, trajectories.frames - 1, min(config.frames, trajectories.frames)).round().astype(int)
    )
    summary(w, times.tolist()).print()
    pictures = [
        contact_sheet(w, times.tolist(), folder / f"{config.file.stem}.png"),
        animation(w, folder / f"{config.file.stem}.gif"),
    ]
    say("wrote " + " and ".join(str(picture) for picture in pictures))
    return pictures


def summary(w: Tensor, times: list[int]) -> Table:
    """Means over the samples of w[sample, x, y, frame] at some frames."""
    columns = [
        Column("frame", "frame"),
        Column("energy", "energy", digits=5),
        Column("enstrophy", "enstrophy"),
        Column("largest", "max |w|", digits=3),
        Column("peak", "peak |k|"),
        Column("mean", "mean |k|", digits=2),
        Column("tail", "energy beyond n/3"),
    ]
    table = Table(columns)
    for time in times:
        fields = w[..., time]
        shells = spectrum(fields).mean(0)
        k = np.arange(len(shells))
        share = (shells / shells.sum()).numpy()
        table.rows.append(
            {
                "frame": time + 1,
                "energy": float(energy(fields).mean()),
                "enstrophy": float(enstrophy(fields).mean()),
                "largest": float(fields.abs().max()),
                "peak": int(share.argmax()),
                "mean": float((k * share).sum()),
                "tail": f"{share[k > fields.shape[-1] / 3].sum():.1e}",
            }
        )
    return table


def contact_sheet(w: Tensor, times: list[int], path: Path) -> Path:
    """Samples by time; each row has its own symmetric colour scale."""
    with plot.style():
        figure, axes = plot.figure(len(w), len(times), width=1.5, height=1.5)
        for i, (row, trajectory) in enumerate(zip(axes, w, strict=True)):
            limit = float(trajectory[..., times].abs().max())
            for panel, time in zip(row, times, strict=True):
                title = f"t = {time + 1}" if i == 0 else ""
                options = {"cmap": plot.FIELD_MAP, "vmin": -limit, "vmax": limit, "origin": "lower"}
                drawn = plot.show_image(panel, trajectory[..., time].T, title=title, **options)
            figure.colorbar(drawn, ax=row, shrink=0.85, aspect=12, pad=0.01).ax.tick_params(labelsize=7)
        return plot.save(figure, path)


def animation(w: Tensor, path: Path, tile: int = 192) -> Path:
    """All samples side by side as an animated GIF, a quarter of a second per frame."""
    from matplotlib import colormaps
    from PIL import Image

    limits = w.abs().amax((1, 2, 3), keepdim=True)
    levels = ((w / limits + 1) / 2).numpy()
    colours = (255 * colormaps[plot.FIELD_MAP](np.linspace(0, 1, 256))[:, :3]).round().astype(np.uint8)
    pictures = []
    for frame in np.moveaxis(levels, -1, 0):
        row = np.concatenate([np.flipud(sample.T) for sample in frame], axis=1)
        picture = Image.fromarray((255 * row).round().astype(np.uint8))
        picture.putpalette(colours.tobytes())
        pictures.append(picture.resize((tile * len(w), tile), Image.Resampling.NEAREST))
    with atomic_path(path) as temporary:
        pictures[0].save(temporary, save_all=True, append_images=pictures[1:], duration=250, loop=0)
    return path
