"""From finished runs to the scores of every test sample, kept once computed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from data.fields.geometry import from_dict
from data.fields.reader import Fields
from data.fields.spectrum import shell_energies
from data.navier_stokes.diagnostics import energy, spectrum
from lab import weights
from lab.console import say
from lab.errors import UserError
from lab.files import content_hash, kept
from lab.manifest import read as read_manifest
from lab.runs import FinishedRun, Row, rows
from pde.config import DataOptions, EvalConfig, TrainConfig
from pde.metrics import (
    correlation_per_frame,
    error_by_band,
    error_by_region,
    error_per_frame,
    error_profile,
    relative_error,
    sample_metrics,
    squares_by_point,
)
from pde.moments import moments
from pde.predictor import Predictor, from_header, load
from pde.problems import DEFAULT, OWN, Problem
from pde.sources import Samples, Split, open_samples, samples_of

SCORES_VERSION = 3
"""To be raised with every change that alters what is kept of a run."""


@dataclass(frozen=True)
class Scores:
    """One run on its test samples.

    Attributes:
        errors: the relative error of each sample, over the whole forecast.
        per_frame: the relative error of each sample and frame.
        places, profile: where on the domain, and the root mean square error there; empty where all places are alike.
        regions: the same by region.
        spectrum, true_spectrum: energy by wavenumber in the last frame of a periodic flow, mean over samples.
        metrics: other scores of each sample, by their names in `pde.metrics.METRICS`.
        bands: the root mean square error by frequency; empty on a sphere.
        correlations: of forecast and truth, of each sample and frame.
        energy, true_energy: of a periodic flow, of each frame, mean over samples.
    """

    errors: list[float]
    per_frame: list[list[float]]
    places: list[float]
    profile: list[float]
    regions: dict[str, float | None]
    spectrum: list[float]
    true_spectrum: list[float]
    metrics: dict[str, list[float]] = field(default_factory=dict)
    bands: dict[str, float | None] = field(default_factory=dict)
    correlations: list[list[float]] = field(default_factory=list)
    energy: list[float] = field(default_factory=list)
    true_energy: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Result:
    """One row of a problem's table in one of its columns: the scores of every seed's run."""

    row: Row
    problem: Problem
    case: str
    title: str
    """The column's title."""
    parameters: int
    scores: tuple[Scores, ...]
    """One for each run of the row."""
    test: Fields
    """The test samples."""
    images: int = 1
    """Images under symmetries over which every step of a forecast is averaged."""

    @property
    def label(self) -> str:
        """What tables call the row."""
        return self.row.label

    def mean_of_runs(self, name: str) -> float | None:
        """The mean of what `pace` knows of its runs."""
        known = [value for run in self.row.runs if (value := pace(run).get(name)) is not None]
        return fmean(known) if known else None


def score_runs(runs: Sequence[FinishedRun], config: EvalConfig, folder: Path) -> list[Result]:
    """Every run of one problem on its own test samples, or all on those of `config.data`; kept in `folder`.

    On data that they share, runs share a column: the label of a row then says what would tell the columns apart.
    """
    case = _options(runs[0], config).about.case
    found = rows(runs, TrainConfig, apart=() if case is None else (case,))
    if case is not None and config.data is not None and len({row.config[case] for row in found}) > 1:
        found = [replace(row, label=f"{row.label}, {case} {row.config[case]:g}") for row in found]
    if len({row.config["frames_in"] for row in found}) > 1:  # whose forecasts differ in their length
        found = [row if "frames in" in row.label else _with_its_start(row) for row in found]
    return [_result(row, config, folder) for row in found]


def score_weights(config: EvalConfig, folder: Path) -> list[Result]:
    """Every given weights file on the test samples of `config.data`, under the name of its folder.

    Files of one folder, or of folders of the same name, are told apart by their paths.
    """
    paths = list(dict.fromkeys(config.weights))
    runs = []
    for path in paths:
        file = weights.load(path, app="pde")
        file.rebuilt(from_header, path)  # refuses a header that describes nothing
        header = file.header
        options = {"model": header["model"], "problem": header["problem"], "seed": 0, **header["options"]}
        options |= header.get(OWN, {})
        runs.append(FinishedRun(path.parent, options, {}, path))
    problems = sorted({problem_of(run) for run in runs})
    if len(problems) > 1:
        raise UserError(f"--weights of different problems ({', '.join(problems)}) share no test data.")
    names = [run.name if len(runs) > 1 else run.model for run in runs]
    if len(set(names)) < len(names):
        names = [str(path.with_suffix("")) for path in paths]
    return [_result(Row(name, (run,)), config, folder) for name, run in zip(names, runs, strict=True)]


def _with_its_start(row: Row) -> Row:
    """The row with the frames that it is given in its label."""
    return replace(row, label=f"{row.label}, frames in {row.config['frames_in']}")


def problem_of(run: FinishedRun) -> str:
    """The problem that a run was trained on."""
    return str(run.config.get("problem", DEFAULT))


def table_of(run: FinishedRun) -> str:
    """The table that a run belongs to: that of its problem or, of own data, that of its file."""
    problem = problem_of(run)
    return f"{problem}-{Path(run.config['data']).stem}" if problem == OWN else problem


def forecast(predictor: Predictor, samples: Samples, batch_size: int = 20) -> Tensor:
    """What a model makes of all that is given: like `samples.wanted`."""
    predictor = predictor.at_resolution(samples.given.shape[1:3])
    frames = samples.wanted.shape[3]
    with torch.inference_mode():
        return torch.cat([predictor.predict(batch, frames) for batch in samples.given.split(batch_size)])


def pace(run: FinishedRun) -> dict[str, Any]:
    """How long the training was: steps, minutes of work, and seconds per pass over the training data."""
    if "steps" not in run.manifest:  # weights that were given as such
        return {}
    last = run.metrics("step", "seconds")[-1]
    passes = last["step"] / run.manifest["steps"]["per_pass"]
    seconds = last.get("work_seconds", last["seconds"])  # runs of earlier versions only have wall time
    return {"steps": last["step"], "minutes": seconds / 60, "pass": seconds / passes}


def _result(row: Row, config: EvalConfig, folder: Path) -> Result:
    problem, test = _test_samples(row.runs[0], config)
    value = None if problem.case is None else test.parameters.get(problem.case)
    if value is None and problem.case is not None and config.data is None:  # not every public file tells it
        value = row.config[problem.case]
    first = load(row.runs[0].weights)
    return Result(
        row=row,
        problem=problem,
        case=test.path.stem if problem.name == OWN else problem.case_name(value),
        title=problem.case_title(value),
        parameters=sum(parameter.numel() for parameter in first.parameters()),
        scores=tuple(_scores(run, config, folder) for run in row.runs),
        test=test,
        images=config.average_symmetries,
    )


def _scores(run: FinishedRun, config: EvalConfig, folder: Path) -> Scores:
    problem, test = _test_samples(run, config)
    described = test.describe()
    which = [described[name] for name in ("fingerprint", "samples", "grid")]
    key = [SCORES_VERSION, content_hash(run.weights), *which]
    key += [] if config.average_symmetries == 1 else [config.average_symmetries]
    return Scores(**kept(folder, key, lambda: asdict(_computed(run, problem, test, config))))


def _computed(run: FinishedRun, problem: Problem, test: Fields, config: EvalConfig) -> Scores:
    """Batch by batch, so that no more than a batch is in memory; the data is read twice, first for its spread."""
    say(f"{run.name}: {len(test)} forecasts")
    predictor, grid = load(run.weights, config.average_symmetries, problem.symmetries), test.grid
    first = 0 if problem.static else problem.frames_in
    spread = moments(test[i][None, ..., first:, :] for i in range(len(test))).std
    flow = not any(grid.geometry.bounded) and problem.name != OWN  # the energy of a vorticity
    waves = grid.weights is None
    shown = test.names.index(problem.shown)
    batch_size = config.batch_size
    errors, per_frame = list[float](), list[list[float]]()
    correlations, metrics = list[list[float]](), dict[str, list[float]]()
    names = "squares", "shells", "made", "true", "made energy", "true energy"
    sums: dict[str, Tensor | float] = dict.fromkeys(names, 0.0)
    for start in range(0, len(test), batch_size):
        some = test.some(start, batch_size)
        samples = samples_of(some, problem)
        prediction, truth = forecast(predictor, samples, batch_size), samples.wanted
        measured = predictor.measured(prediction), predictor.measured(truth)
        errors += relative_error(*measured, grid.weights).tolist()
        per_frame += error_per_frame(*measured, grid.weights).tolist()
        if not problem.static:
            correlations += correlation_per_frame(prediction, truth, grid.weights).tolist()
        for name, values in sample_metrics(prediction, truth, grid).items():
            metrics.setdefault(name, []).extend(values.tolist())
        sums["squares"] += len(some) * squares_by_point(prediction, truth, spread)
        if waves:
            sums["shells"] += shell_energies(prediction - truth).sum(0)
        for name, part in (("made", prediction), ("true", truth)) if flow else ():
            frames = part[..., shown].movedim(3, 1)
            sums[name] += spectrum(frames[:, -1]).sum(0)
            sums[f"{name} energy"] += energy(frames).sum(0)
    means = {name: torch.as_tensor(total) / len(test) for name, total in sums.items()}
    places, profile = torch.empty(0), torch.empty(0)
    if grid.geometry.places:
        places, profile = error_profile(means["squares"], grid)
    points = len(grid.rows) * len(grid.columns)
    return Scores(
        errors=errors,
        per_frame=per_frame,
        places=places.tolist(),
        profile=profile.tolist(),
        regions=error_by_region(means["squares"], grid),
        spectrum=means["made"].tolist() if flow else [],
        true_spectrum=means["true"].tolist() if flow else [],
        metrics=metrics,
        bands=error_by_band(means["shells"], points) if waves else {},
        correlations=correlations,
        energy=means["made energy"].tolist() if flow else [],
        true_energy=means["true energy"].tolist() if flow else [],
    )


def _test_samples(run: FinishedRun, config: EvalConfig) -> tuple[Problem, Fields]:
    """The problem of a run and its test samples; of another file all samples, unless fewer are asked for."""
    options = _options(run, config)
    problem, count = options.about, config.num_test
    if config.data is None:
        test = Split(options).test
    else:
        test = open_samples(config.data, problem, options)
        _require_same_fields(run, test)
        known = _samples_known(run, test)
        if count is None and known:  # as in training
            count = min(known["test"][1] - known["test"][0], len(test))
    return problem, test if count is None else test.split(0, count)[1]


def seen_in_training(result: Result) -> bool:
    """Whether a run of the row was trained or validated on some of its test samples."""
    known = [_samples_known(run, result.test) for run in result.row.runs]
    return any(parts and result.test.samples.start < parts["validation"][1] for parts in known)


def _samples_known(run: FinishedRun, test: Fields) -> Mapping[str, Sequence[int]]:
    """How a run divided the samples of this data, {"train": [0, 100], ...}; nothing if it was trained on other data.

    The manifest of weights that were given as such lies beside them.
    """
    path = run.folder / "manifest.json"
    manifest = run.manifest or (read_manifest(path) if path.is_file() else {})
    data = manifest.get("data") or {}
    return data["samples"] if data.get("fingerprint") == test.fingerprint else {}


def _require_same_fields(run: FinishedRun, test: Fields) -> None:
    """Refuse data that is not of the kind that the run was trained on: other fields, or another domain."""
    header = weights.load(run.weights, app="pde").header
    if (header["recipe"] == "map") != test.static:
        kinds = {True: "maps from an input to its answer", False: "trajectories"}
        raise UserError(
            f"{run.name} was trained on {kinds[not test.static]}, and {test.path} holds {kinds[test.static]}; "
            "give other data."
        )
    geometry = from_dict(header["geometry"])
    if geometry != test.geometry:
        raise UserError(
            f"{run.name} was trained on a domain {geometry}, and that of {test.path} is {test.geometry}; "
            "give other data."
        )
    there = {"field_names": test.names, "input_names": test.inputs if test.static else test.names}
    for key, names in {**there, "constant_names": test.constants}.items():
        known = header.get(key)
        if known is None:  # weights of earlier versions
            continue
        in_other_order = sorted(known) == sorted(names) and known != list(names)
        if len(known) != len(names) or in_other_order:
            what = key.removesuffix("_names")
            raise UserError(
                f"{run.name} was trained on the {what}s {', '.join(known) or 'none'}, and {test.path} has "
                f"{', '.join(names) or 'none'}; give data with as many, in the same order."
            )


def _options(run: FinishedRun, config: EvalConfig) -> DataOptions:
    """Where the samples of a run come from."""
    known = {entry.name: run.config[entry.name] for entry in fields(DataOptions) if entry.name in run.config}
    path = config.data or known.get("data")
    known["data"] = None if path is None else Path(path)
    return DataOptions(**known)
