"""`python -m mri.eval`: score the finished runs on the test scans; tables, figures, volumes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.cli import main
from lab.errors import UserError
from lab.memory import keep_freed
from lab.paths import runs_dir
from lab.runs import FinishedRun, finished_runs
from mri.config import EvalConfig, TrainConfig

if TYPE_CHECKING:
    from data.scans.scan import Scan


def evaluate(config: EvalConfig) -> None:
    """Make the paper's tables, and figures, from all finished runs."""
    folder = config.runs or runs_dir() / TrainConfig.app
    runs = [each for each in finished_runs(TrainConfig, folder) if (config.only or "") in each.name]
    if not runs:
        raise UserError(f"no finished run in {folder} has {config.only!r} in its name.")
    place = config.out or folder / "results"
    if config.cross:
        _cross(runs, config.cross, place, config)
    else:
        report(runs, place, config)


def _cross(runs: Sequence[FinishedRun], roots: Sequence[Path], folder: Path, config: EvalConfig) -> None:
    import torch

    from lab.console import say_written
    from lab.table import publish
    from mri.cross import cross_table

    keep_freed()
    torch.set_num_threads(config.threads or torch.get_num_threads())
    table = cross_table(runs, roots, config, folder / "scores")
    say_written(folder, publish({"cross": table}, folder))


def report(runs: Sequence[FinishedRun], folder: Path, config: EvalConfig) -> None:
    """Tables, figures and volumes of some runs; runs on other data, or sampled otherwise, have tables of their own."""
    from collections import Counter

    import torch

    from lab.console import say
    from lab.files import fingerprint
    from mri.volumes import need_nibabel

    if config.export == "nifti":
        need_nibabel()  # before the work
    keep_freed()
    torch.set_num_threads(config.threads or torch.get_num_threads())
    if config.data is not None and not config.data.is_dir():
        raise UserError(f"--data names {config.data}, but there is no such folder.")
    groups: dict[tuple[Path, str], list[FinishedRun]] = {}
    for each in runs:
        root = Path(config.data or each.manifest["data"]["root"])
        root = next((other for other, _ in groups if other.resolve() == root.resolve()), root)
        if "undersampled" in each.manifest["data"] and not _can_be_scored(each, root, config):
            own = each.config.get("scan")
            wanted = f"scan {own} among the {config.split} scans" if own else f"{config.split} scan"
            say(
                f"{each.name} learned from scans that were acquired undersampled, and {root} has no fully sampled "
                f"{wanted} to score it on: python -m mri.reconstruct --weights {each.weights} reconstructs a scan"
            )
            continue
        if not root.is_dir():
            raise UserError(f"the data of {each.name} were in {root}, which is gone; name it with --data.")
        groups.setdefault((root, each.config["mask"]), []).append(each)
    if not groups:
        raise UserError("no run is left to score; name fully sampled scans with --data.")
    namesakes = Counter(root.name for root in {root for root, _ in groups})
    for (root, mask), members in groups.items():
        apart = f"-{fingerprint(str(root.resolve()))[:6]}" if namesakes[root.name] > 1 else ""
        place = folder / f"{root.name}{apart}-{mask}" if len(groups) > 1 else folder
        _report_one(members, root, place, config)


def _can_be_scored(run: FinishedRun, root: Path, config: EvalConfig) -> bool:
    """Whether there are scans with a target below `root`, for a run of --supervision zero-shot its own."""
    from data.scans.reader import load_scans

    try:
        scans = load_scans(root, config.split, plane=config.plane, skip_bad=True).scans
    except UserError:
        return False
    return run.config.get("scan") in (None, *(scan.scan_id for scan in scans))


def _report_one(runs: Sequence[FinishedRun], root: Path, folder: Path, config: EvalConfig) -> None:
    from lab.console import say, say_written
    from lab.files import write_text
    from lab.table import publish
    from mri.coverage import coverage_figure, coverage_table
    from mri.figures import figures
    from mri.report import write
    from mri.scores import score_runs
    from mri.sources import Source
    from mri.t2 import timing_of
    from mri.t2_results import t2_results
    from mri.tables import per_scan_csv, results_tables
    from mri.volumes import export

    source = Source(root, skip_bad=True, plane=config.plane)
    scans = source.scans(config.split)
    mask = runs[0].config["mask"]
    if config.split == "test":
        _warn_of_overlap(runs, scans)
    data = f"{scans[0].origin}, {len(scans)} {config.split} scan{'s' if len(scans) > 1 else ''}"
    say(f"data: {data}, in {root}; {mask} sampling")
    for scan in scans if config.t2 else ():
        if scan.num_echoes == 2:
            timing_of(scan, config)  # what is missing is asked for before the work
    results = score_runs(runs, scans, mask, folder / "scores", config.accs)
    tables = results_tables(results, data, config.against)
    pictures: list[Path] = []
    if config.t2:
        tables["t2"], pictures = t2_results(results, scans, mask, config, folder, data)
    if config.uncertainty:
        tables["uncertainty"] = coverage_table(results, scans, mask, data, root)
    written = [*publish(tables, folder), *pictures]
    write_text(folder / "per_scan.csv", per_scan_csv(results))
    written.append(folder / "per_scan.csv")
    if config.uncertainty and config.figures:
        written.append(coverage_figure(results, scans[0], mask, folder))
    if config.figures:
        written += figures(results, scans[0], mask, folder, scans[0].origin)
        path = folder / "report.html"
        t2 = config if config.t2 else None
        written.append(write(results, list(tables.values()), scans, mask, data, path, t2))
    if config.export == "nifti":
        written += export(results, scans, mask, folder / "volumes")
    say_written(folder, written)


def _warn_of_overlap(runs: Sequence[FinishedRun], scans: "Sequence[Scan]") -> None:
    """Say which runs have seen the scans that they are now scored on."""
    from lab.console import say

    names = {scan.scan_id for scan in scans}
    alike = [run for run in runs if run.manifest["data"]["name"] == scans[0].origin]
    for run in alike:  # scans of another kind of data may have the same names
        seen = {key: names & set(run.manifest["data"][key]) for key in ("train", "validation")}
        if seen["train"] or seen["validation"]:
            words = " and ".join(f"{len(found)} in {key}" for key, found in seen.items() if found)
            say(f"{run.name} has met scans that it is scored on: {words}")


if __name__ == "__main__":
    main(evaluate)
