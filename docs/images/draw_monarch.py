"""Draws docs/images/monarch.png: python docs/images/draw_monarch.py"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from monarch_core import Monarch, Stride

SIDE = 4
ROWS = ("#2f6fb0", "#4f9bd8", "#86c0ea", "#bcdcf5")  # one colour per block of R
COLUMNS = ("#b3541e", "#d97a34", "#eca766", "#f7d3aa")  # one colour per block of L
GREY = "#d9d9d9"


def grid(axes: Axes, colours: list[list[str]], title: str, rows: str, columns: str) -> None:
    """A SIDE x SIDE grid of coloured cells with its two index letters."""
    for a in range(SIDE):
        for b in range(SIDE):
            axes.add_patch(
                Rectangle((b, SIDE - 1 - a), 1, 1, facecolor=colours[a][b], edgecolor="white", lw=2)
            )
    axes.text(-0.35, SIDE / 2, rows, ha="right", va="center", fontsize=11)
    axes.text(SIDE / 2, SIDE + 0.2, columns, ha="center", va="bottom", fontsize=11)
    axes.text(SIDE / 2, -0.3, title, ha="center", va="top", fontsize=11)
    axes.set(xlim=(-0.6, SIDE + 0.1), ylim=(-1.6, SIDE + 0.8), aspect="equal")
    axes.axis("off")


def matrix(axes: Axes, pattern: np.ndarray, title: str) -> None:
    """The colours (n, n, 3) of the entries of a matrix."""
    axes.imshow(pattern, interpolation="nearest")
    n = len(pattern)
    axes.set_xticks(np.arange(-0.5, n, SIDE), labels=[])
    axes.set_yticks(np.arange(-0.5, n, SIDE), labels=[])
    axes.grid(color="#999999", lw=0.6)
    axes.tick_params(length=0)
    axes.set_xlabel(title, fontsize=12)


def painted(entries: torch.Tensor, colour_of_entry: list[list[str]]) -> np.ndarray:
    pattern = np.ones((*entries.shape, 3))
    for row, column in zip(*np.nonzero(entries.numpy()), strict=True):
        pattern[row, column] = to_rgb(colour_of_entry[row][column])
    return pattern


def main() -> None:
    n = SIDE * SIDE
    figure, axes = plt.subplots(2, 5, figsize=(12.5, 6.2), height_ratios=(1.15, 1))
    by_row = [[ROWS[a]] * SIDE for a in range(SIDE)]
    by_column = [[COLUMNS[b] for b in range(SIDE)] for _ in range(SIDE)]
    plain = [[GREY] * SIDE for _ in range(SIDE)]
    grid(axes[0, 0], plain, "x, read as a grid", "k", "i")
    grid(axes[0, 1], by_row, "R: one block per row\nmixes i into j", "k", "i → j")
    grid(axes[0, 2], plain, "the same numbers,\nread by columns (Pᵀ)", "k", "j")
    grid(axes[0, 3], by_column, "L: one block per column\nmixes k into l", "k → l", "j")
    grid(axes[0, 4], plain, "y = M x,\nread off row by row (P)", "l", "j")

    # The same steps as matrices; the patterns come from the operator itself.
    ones = Monarch.from_factors(torch.ones(SIDE, SIDE, 1, SIDE), torch.ones(SIDE, SIDE, SIDE, 1))
    P = Stride(n, SIDE).to_dense()
    blocks = torch.block_diag(*[torch.ones(SIDE, SIDE)] * SIDE)
    row_colour = [[ROWS[column // SIDE] for column in range(n)] for _ in range(n)]
    column_colour = [[COLUMNS[row // SIDE] for _ in range(n)] for row in range(n)]
    mixed = 0.5 * painted(ones.to_dense().detach(), row_colour) + 0.5 * painted(
        ones.to_dense().detach(), [[COLUMNS[row % SIDE]] * n for row in range(n)]
    )
    black = [["#444444"] * n for _ in range(n)]
    matrix(axes[1, 0], mixed, "M   =")
    matrix(axes[1, 1], painted(P, black), "P")
    matrix(axes[1, 2], painted(blocks, column_colour), "L")
    matrix(axes[1, 3], painted(P.T, black), "Pᵀ")
    matrix(axes[1, 4], painted(blocks, row_colour), "R")
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("monarch.png"), dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
