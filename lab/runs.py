"""Finished runs: which of them belong together, what a table calls them, and training what is missing.

Runs belong together, as seeds of one row, if they differ in nothing but the seed and in where and how they were run.
Everything else that differs becomes part of the row's label. Both are computed from the stored options; there is no
list of options that count.
"""

import csv
import gc
import json
import typing
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from lab import manifest
from lab.checks import flag
from lab.config import ExperimentConfig, defaults, differences
from lab.console import say
from lab.errors import UserError, readable
from lab.files import check_kinds, read_table
from lab.paths import runs_dir

C = TypeVar("C", bound=ExperimentConfig)


@dataclass(frozen=True)
class FinishedRun:
    """A run that reached its last epoch: its folder, options and manifest."""

    folder: Path
    config: Mapping[str, Any]
    manifest: Mapping[str, Any]
    weights_file: Path | None = None
    """Its weights, where they are not in their usual place."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def model(self) -> str:
        """What was trained."""
        return str(self.config["model"])

    @property
    def seed(self) -> int:
        """The seed it was trained with."""
        return int(self.config["seed"])

    @property
    def weights(self) -> Path:
        """Its best weights."""
        return self.weights_file or self.folder / "weights.safetensors"

    def metrics(self, *needed: str) -> list[dict[str, float]]:
        """The rows of metrics.csv, as numbers; each has the epoch and the columns that are needed."""
        path = self.folder / "metrics.csv"
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is not a regular file; restore it, or move the run elsewhere.")
        with path.open(encoding="utf-8") as file, readable(path, "restore it, or move the run elsewhere"):
            rows = [
                {key: float(value) for key, value in row.items() if value} for row in csv.DictReader(file)
            ]
            if not rows:
                raise ValueError("there are no rows")
            for number, row in enumerate(rows, start=1):
                if lacking := ({"epoch", *needed} | rows[0].keys()) - row.keys():
                    raise ValueError(f"row {number} has no {min(lacking)}")
            return rows


@dataclass(frozen=True)
class Row:
    """Runs that differ in the seed alone, and what a table calls them."""

    label: str
    runs: tuple[FinishedRun, ...]

    @property
    def model(self) -> str:
        """What was trained."""
        return self.runs[0].model

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The options of its first run."""
        return self.runs[0].config


def finished_runs(config_class: type[ExperimentConfig], folder: Path | None = None) -> list[FinishedRun]:
    """All finished runs of an application, by folder name; none at all is a `UserError`."""
    parent = folder or runs_dir() / config_class.app
    runs = list(_finished(parent, config_class))
    if not runs:
        raise UserError(
            f"there is no finished run in {parent}; train one first with: python -m {config_class.package}.train"
        )
    return runs


def _finished(parent: Path, config_class: type[ExperimentConfig]) -> Iterator[FinishedRun]:
    for path in sorted(parent.glob("*/manifest.json")):
        described = manifest.read(path)
        if described.get("status") == "finished":
            stored = path.with_name("config.yaml")
            options = read_table(stored)
            check_kinds(stored, {"model": None, "seed": None} | options, typing.get_type_hints(config_class))
            # What was no option then had, in effect, what is its default now.
            yield FinishedRun(path.parent, defaults(config_class, options["model"]) | options, described)


def rows(
    runs: Iterable[FinishedRun], config_class: type[ExperimentConfig], apart: Iterable[str] = ()
) -> list[Row]:
    """The runs by row, in the order of the registry. `apart` names options that the table shows in columns of its own.

    A label is the model's name and those options in which its rows differ, but for the commonest value of each; and
    those of the model's own options that depart from its default where another model keeps to its own. Of runs that
    are equal even in the seed the last one counts.
    """
    runs, apart = list(runs), frozenset(apart)
    identities = [_identity(run, config_class) for run in runs]
    groups: dict[str, dict[int, FinishedRun]] = {}
    of_group: dict[str, dict[str, Any]] = {}
    for run, identity in zip(runs, identities, strict=True):
        key = json.dumps(identity, sort_keys=True, default=str)
        same = groups.setdefault(key, {})
        if run.seed in same:
            say(f"{same[run.seed].name} and {run.name} are equal in every option; the second counts")
        same[run.seed] = run
        of_group[key] = identity
    departures = {key: _departures(identity, config_class) for key, identity in of_group.items()}
    # An option in which every row that has it departs tells none of them apart.
    kept = {option for key, identity in of_group.items() for option in identity.keys() - departures[key]}
    found = []
    for key, by_seed in groups.items():
        model = of_group[key]["model"]
        rivals = [identity for identity in of_group.values() if identity["model"] == model]
        always = departures[key] & kept
        words = _differences(of_group[key], rivals, defaults(config_class, model), apart, always)
        found.append(Row(", ".join([model, *words]), tuple(by_seed[seed] for seed in sorted(by_seed))))
    # Words that are too short to tell two rows apart, as of an option that is off and of one that an older run had not.
    places = [(row.label, *(str(row.config.get(key)) for key in sorted(apart))) for row in found]
    found = [
        row if places.count(place) == 1 else replace(row, label=f"{row.label} ({row.runs[0].name})")
        for row, place in zip(found, places, strict=True)
    ]
    order = {name: place for place, name in enumerate(config_class.registry)}
    return sorted(found, key=lambda row: (order.get(row.model, len(order)), row.label))


def _identity(run: FinishedRun, config_class: type[ExperimentConfig]) -> dict[str, Any]:
    """Everything that decides what a run computed, but for the seed. Data counts by its content, not by its path."""
    options = defaults(config_class, run.model) | dict(run.config)
    ignored = config_class.placement | {"seed", "data"}
    identity = {key: value for key, value in options.items() if key not in ignored and value is not None}
    data = run.manifest.get("data") or {}
    return identity | {"data": data.get("source", data.get("fingerprint"))}


def _departures(identity: Mapping[str, Any], config_class: type[ExperimentConfig]) -> set[str]:
    """The model's own options that are not what they are by default; a default of None is open to any value."""
    registry, model = config_class.registry, identity["model"]
    usual = registry[model].defaults if model in registry else {}
    return {key for key, default in usual.items() if default is not None and identity.get(key) != default}


def _differences(
    mine: Mapping[str, Any],
    rivals: Sequence[Mapping[str, Any]],
    usual: Mapping[str, Any],
    apart: frozenset[str],
    always: Collection[str],
) -> list[str]:
    words = []
    # Where a column has an option's value (a viscosity), its data differs from that of the other columns.
    beside = [identity for identity in rivals if all(identity.get(key) == mine.get(key) for key in apart)]
    # A row counts once, however many values of the options in columns it was trained with.
    once = {
        json.dumps({key: each[key] for key in sorted(each.keys() - apart)}, default=str): each
        for each in rivals
    }
    for key in dict.fromkeys(key for identity in rivals for key in identity):
        values = [identity.get(key) for identity in (beside if key == "data" else once.values())]
        counts = Counter(map(str, values))
        if key in apart or (len(counts) == 1 and key not in always):
            continue
        most = max(counts.values())
        commonest = [value for value in counts if counts[value] == most]
        # Where no value is the commonest the default goes without saying; failing that, none does.
        default = str(usual.get(key))
        unsaid = commonest[0] if len(commonest) == 1 else default if default in commonest else None
        if len(counts) == 1 or str(mine.get(key)) != unsaid:
            words.append(_said(key, mine.get(key)))
    return words


def _said(key: str, value: Any) -> str:
    """An option as words: `modes 8`, `symmetries`, `no symmetries`.

    >>> _said("batch_size", 4), _said("symmetries", True), _said("lr", 0.001), _said("padding", None)
    ('batch size 4', 'symmetries', 'lr 0.001', 'no padding')
    """
    name = key.replace("_", " ")
    if value is True:
        return name
    if value is None or value is False:
        return f"no {name}"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def train_missing(wanted: Sequence[C], train: Callable[[C], Any]) -> list[FinishedRun]:
    """Train every run that is not finished yet, one after the other; return them all. Each has a name."""
    from lab.run import continued_by

    command = manifest.command_line()
    for number, config in enumerate(wanted, start=1):
        assert config.name is not None
        folder = runs_dir() / config.app / config.name
        finished = _is_finished(folder)
        before = f": finished before{_other_options(config, folder)}" if finished else ""
        say(f"run {number}/{len(wanted)}, {config.name}{before}")
        if not finished:
            with continued_by(command):
                train(config)
            gc.collect()  # a training ends in cycles that hold its data: gigabytes, after a few runs
    names = {config.name for config in wanted}
    return [run for run in finished_runs(type(wanted[0])) if run.name in names]


def _other_options(config: ExperimentConfig, folder: Path) -> str:
    """Options that a finished run was trained with and that are not those asked for now, as words."""
    changed = differences(config, read_table(folder / "config.yaml"))
    listing = ", ".join(f"{flag(key)} was {then}, now {now}" for key, (now, then) in changed.items())
    return (
        f" with other options ({listing}); a run of another name would have those of now" if listing else ""
    )


def _is_finished(folder: Path) -> bool:
    path = folder / "manifest.json"
    return path.is_file() and read_table(path).get("status") == "finished"
