"""Tables and figures of some evaluations, on the screen and in a folder."""

from collections.abc import Sequence
from pathlib import Path

from lab.console import say
from lab.errors import UserError
from lab.paths import runs_dir
from pde.config import EvalConfig
from pde.evaluate import Evaluation
from pde.figures import animation, energy_spectra, error_curves, panels
from pde.results import ORDER, ratios_table, results_table, viscosities


def report(evaluations: Sequence[Evaluation], config: EvalConfig) -> list[Path]:
    """Print the tables, write them in all formats and, if asked for, the figures; return the paths."""
    folder = config.out or runs_dir() / "pde" / "results"
    table, ratios = results_table(evaluations), ratios_table(evaluations)
    table.print()
    paths = table.save(folder, "table")
    if ratios is not None:
        ratios.print()
        paths += ratios.save(folder, "ratios")
    if config.figures:
        paths += _figures(evaluations, config, folder)
    say("wrote " + ", ".join(str(path) for path in paths))
    return paths


def _figures(evaluations: Sequence[Evaluation], config: EvalConfig, folder: Path) -> list[Path]:
    shown = (
        sorted((e for e in evaluations if e.seed == 0), key=lambda e: (ORDER.index(e.model), e.label))
        or evaluations
    )
    paths = [error_curves(shown, folder / "errors.png"), energy_spectra(shown, folder / "spectra.png")]
    for nu in viscosities(shown):
        here = [e for e in shown if e.nu == nu and e.truth.shape == _first(shown, nu).truth.shape]
        for sample in config.samples:
            if not 0 <= sample < len(here[0].truth):
                raise UserError(
                    f"--samples: there are {len(here[0].truth)} test samples, from 0; not {sample}."
                )
            name = f"nu{nu:.0e}_sample{sample}".replace("e-0", "e-")
            paths.append(panels(here, sample, folder / f"{name}.png"))
            paths.append(animation(here, sample, folder / f"{name}.gif"))
    return paths


def _first(evaluations: Sequence[Evaluation], nu: float) -> Evaluation:
    return next(e for e in evaluations if e.nu == nu)
