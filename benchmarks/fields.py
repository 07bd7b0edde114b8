"""How exact and how fast the generators of fields are: python -m benchmarks.fields [darcy|burgers|shallow-water].

Relative differences of the solution, as it is stored, between the default and a finer computation of the same
samples; processor time for a sample on one thread.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from data.burgers.config import GenerateConfig as Burgers
from data.darcy.config import GenerateConfig as Darcy
from data.shallow_water.config import GenerateConfig as ShallowWater
from lab.table import Column, Table


def main() -> None:
    """Compare the problems named, or all."""
    problems = {"darcy": darcy, "burgers": burgers, "shallow-water": shallow_water}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help=f"of {', '.join(problems)}; all when none is given")
    names = parser.parse_args().problems
    if unknown := set(names) - set(problems):
        parser.error(f"there is no problem {min(unknown)!r}; choose from {', '.join(problems)}.")
    for name in names or problems:
        problems[name]()


def darcy() -> None:
    """Against other solver grids; the medium gains detail, so it is the same problem only in part."""
    from data.darcy.generate import solve_samples

    samples = range(8)
    usual, spent = timed(solve_samples, Darcy().settings, samples)
    table = new_table("Darcy flow, default grid 192")
    for grid in (64, 320):
        other, seconds = timed(solve_samples, Darcy(grid=grid).settings, samples)
        add(table, f"grid {grid}", difference(usual[..., 1:], other[..., 1:]), seconds, spent)
    table.print()


def burgers() -> None:
    """Against other grids and float64, on the first samples."""
    from data.burgers.generate import solve_samples

    samples = range(4)
    usual, spent = timed(solve_samples, Burgers().settings, samples)
    table = new_table("Burgers flow between walls, default grid 128, float32")
    others: list[dict[str, Any]] = [{"precision": "float64"}, {"grid": 64}, {"grid": 96}, {"grid": 192}]
    for change in others:
        other, seconds = timed(solve_samples, Burgers(**change).settings, samples)
        label = ", ".join(f"{key} {value}" for key, value in change.items())
        add(table, label, difference(usual, other), seconds, spent)
    table.print()


def shallow_water() -> None:
    """Against other steps, over the first eighteen hours: six of spin-up and twelve frames."""
    from data.shallow_water.generate import solve_samples

    samples = range(10)
    usual, spent = timed(solve_samples, ShallowWater(frames=12).settings, samples)
    table = new_table("shallow water, default 8 steps per hour")
    for steps in (4, 16):
        other, seconds = timed(solve_samples, ShallowWater(frames=12, steps_per_hour=steps).settings, samples)
        for i, name in enumerate(("geopotential", "vorticity", "divergence")):
            found = difference(usual[..., i : i + 1], other[..., i : i + 1])
            add(table, f"{steps} steps, {name}", found, seconds, spent)
    table.print()


def timed(solve: Callable[[Any, Any], np.ndarray], settings: Any, samples: range) -> tuple[np.ndarray, float]:
    """The samples, and the processor time for each of them."""
    import torch

    torch.set_num_threads(1)
    start = time.process_time()
    return solve(settings, samples), (time.process_time() - start) / len(samples)


def difference(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Relative L2 difference of every frame, (sample, frame)."""
    axes = (1, 2, 4)
    change = found.astype(np.float64) - expected
    return np.sqrt((change**2).sum(axes) / (expected.astype(np.float64) ** 2).sum(axes))


def new_table(title: str) -> Table:
    """Difference and time."""
    print(f"\n{title}")
    titles = "compared with", "mean difference", "worst frame", "last frame"
    seconds = "s per sample, it", "s per sample, default"
    return Table([Column(title, digits=3) for title in (*titles, *seconds)])


def add(table: Table, label: str, found: np.ndarray, seconds: float, usual: float) -> None:
    """One row."""
    shown = (f"{value:.1e}" for value in (found.mean(), found.max(), found[:, -1].mean()))
    table.add(label, *shown, seconds, usual)


if __name__ == "__main__":
    main()
