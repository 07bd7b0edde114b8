"""The plotting style of the suite: one look for every figure, drawn without a screen."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# Okabe and Ito's palette: told apart by people with any kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
FIELD_MAP = "RdBu_r"  # signed fields, symmetric about zero
ERROR_MAP = "magma"  # magnitudes of errors, from zero
IMAGE_MAP = "gray"  # MR images
QUANTITY_MAP = "viridis"  # quantities, from zero

STYLE: dict[Any, Any] = {  # matplotlib types its keys as literals
    "figure.dpi": 120,
    "savefig.dpi": 150,
    "savefig.bbox": "tight",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "image.interpolation": "nearest",
}


@contextmanager
def style() -> Iterator[None]:
    """Use the suite's style, and a backend that needs no display, within the block."""
    import matplotlib
    from cycler import cycler

    matplotlib.use("Agg", force=False)
    # All colours in solid lines, then again in dashed ones: as many models as a table has stay apart.
    lines = cycler(linestyle=("-", "--")) * cycler(color=COLOURS)
    with matplotlib.rc_context(STYLE | {"axes.prop_cycle": lines}):
        yield


def figure(
    rows: int = 1, columns: int = 1, *, width: float = 3.2, height: float = 2.4
) -> tuple["Figure", np.ndarray]:
    """A figure of rows x columns panels of the given size in inches; the axes always as a 2-D array."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(columns * width, rows * height), layout="constrained")
    FigureCanvasAgg(drawn)
    return drawn, drawn.subplots(rows, columns, squeeze=False)


def legend_beside(drawn: "Figure") -> None:
    """One legend for all panels, to the right of them, where it covers no curve; the figure grows by its width."""
    entries: dict[str, Any] = {}
    for panel in drawn.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    legend = drawn.legend(list(entries.values()), list(entries), loc="outside right upper")
    width, height = drawn.get_size_inches()
    drawn.set_size_inches(width + legend.get_window_extent().width / drawn.dpi, height)


def show_image(axes: "Axes", image: Any, *, title: str = "", **options: Any) -> "AxesImage":
    """Draw a 2-D array as a picture without ticks; options go to `imshow`."""
    drawn = axes.imshow(np.asarray(image), **options)
    axes.set(xticks=[], yticks=[], title=title)
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return drawn


def save(drawn: "Figure", path: Path) -> Path:
    """Write a figure; the suffix of the path chooses the format."""
    with atomic_path(path) as temporary:
        drawn.savefig(temporary)
    return path


def animation(movies: Sequence[np.ndarray], path: Path, *, tile: int = 192, milliseconds: int = 250) -> Path:
    """Movies (frame, line, column) side by side as an animated GIF; values from -1 to 1, further ones are cut off.

    A tile is `tile` pixels high.
    """
    from matplotlib import colormaps
    from PIL import Image

    colours = (255 * colormaps[FIELD_MAP](np.linspace(0, 1, 256))[:, :3]).round().astype(np.uint8)
    levels = np.concatenate([np.clip(movie, -1, 1) for movie in movies], axis=2)
    _, lines, columns = levels.shape
    pictures = []
    for frame in (255 * (levels + 1) / 2).round().astype(np.uint8):
        picture = Image.fromarray(frame)
        picture.putpalette(colours.tobytes())
        size = round(tile * columns / lines), tile
        pictures.append(picture.resize(size, Image.Resampling.NEAREST))
    with atomic_path(path) as temporary:
        pictures[0].save(temporary, save_all=True, append_images=pictures[1:], duration=milliseconds, loop=0)
    return path
