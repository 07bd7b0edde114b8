"""Tables and figures of some evaluations of one problem, on the screen and in a folder."""

from collections.abc import Sequence
from pathlib import Path

from lab.console import say
from lab.errors import UserError
from lab.files import write_text
from lab.paths import runs_dir
from lab.table import Table
from pde.config import EvalConfig
from pde.evaluate import Evaluation
from pde.figures import animation, energy_spectra, error_curves, error_places, panels
from pde.problems import DEFAULT
from pde.profile import places_table
from pde.results import ORDER, cases, ratios_table, results_table, samples_table
from pde.targets import targets_table


def report(evaluations: Sequence[Evaluation], config: EvalConfig) -> list[Path]:
    """Print the tables, write them in all formats and, if asked for, the figures; return the paths."""
    folder = _folder(evaluations, config)
    table, ratios = results_table(evaluations), ratios_table(evaluations)
    table.print()
    paths = table.save(folder, "table")
    write_text(folder / "per_sample.csv", samples_table(evaluations).csv())
    paths.append(folder / "per_sample.csv")
    if ratios is not None:
        ratios.print()
        paths += ratios.save(folder, "ratios")
    targets = targets_table(evaluations)
    if targets is not None:
        targets.print()
        paths += targets.save(folder, "targets")
    places = places_table(evaluations) if evaluations[0].grid.geometry.places else None
    if places is not None:
        places.print()
        paths += places.save(folder, "places")
    if config.figures:
        paths += _figures(evaluations, config, folder)
    tables = [t for t in (table, targets, ratios, places) if t is not None]
    paths.append(_page(evaluations, tables, paths, folder))
    say("wrote " + ", ".join(str(path) for path in paths))
    return paths


def _page(evaluations: Sequence[Evaluation], tables: list[Table], paths: list[Path], folder: Path) -> Path:
    """All tables and still figures as one page, to be read as it is or copied into a document."""
    parts = [f"# {evaluations[0].problem.title}", *(table.markdown().rstrip() for table in tables)]
    parts += [f"![{path.stem}]({path.name})" for path in paths if path.suffix == ".png"]
    runs = ", ".join(sorted(e.name for e in evaluations))
    parts.append(f"{len(evaluations[0].truth)} test samples of simulated flow. Runs: {runs}.")
    write_text(folder / "report.md", "\n\n".join(parts) + "\n")
    return folder / "report.md"


def _folder(evaluations: Sequence[Evaluation], config: EvalConfig) -> Path:
    problem = evaluations[0].problem.name
    whole = config.out or runs_dir() / "pde" / "results"
    asked = config.out is not None and (config.weights or config.problem is not None)
    return whole if asked or problem == DEFAULT else whole / problem


def _figures(evaluations: Sequence[Evaluation], config: EvalConfig, folder: Path) -> list[Path]:
    shown = (
        sorted((e for e in evaluations if e.seed == 0), key=lambda e: (ORDER.index(e.model), e.label))
        or evaluations
    )
    problem = shown[0].problem
    paths = []
    if not problem.static:
        paths.append(error_curves(shown, folder / "errors.png"))
    if shown[0].grid.geometry.places:
        paths.append(error_places(shown, folder / "places.png"))
    else:
        paths.append(energy_spectra(shown, folder / "spectra.png"))
    for case in cases(shown):
        first = next(e for e in shown if e.case == case)
        here = [e for e in shown if e.case == case and e.truth.shape == first.truth.shape]
        for sample in config.samples:
            if not 0 <= sample < len(first.truth):
                raise UserError(
                    f"--samples: there are {len(first.truth)} test samples, from 0; not {sample}."
                )
            stem = first.case if first.nu is None else f"nu{first.nu:.0e}".replace("e-0", "e-")
            paths.append(panels(here, sample, folder / f"{stem}_sample{sample}.png"))
            if not problem.static:
                paths.append(animation(here, sample, folder / f"{stem}_sample{sample}.gif"))
    return paths
