"""The plan of the house: the same roles under the same names, a model enters once, runs that cannot be mixed up."""

import ast
import dataclasses
import importlib
import typing
from pathlib import Path
from typing import Any

import pytest

from lab.config import ExperimentConfig, defaults
from lab.runs import FinishedRun, rows

APPLICATIONS = ("lab.demo", "pde", "mri")
ROLES = (
    "config.py",
    "models/__init__.py",
    "models/__main__.py",
    "sources.py",
    "experiment.py",
    "augment.py",
    "metrics.py",
    "predictor.py",
    "scores.py",
    "tables.py",
    "figures.py",
    "train.py",
    "eval.py",
    "table.py",
)


def config_class(package: str) -> type[ExperimentConfig]:
    found: type[ExperimentConfig] = importlib.import_module(f"{package}.config").TrainConfig
    return found


@pytest.mark.parametrize("package", APPLICATIONS)
@pytest.mark.parametrize("role", ROLES)
def test_every_application_has_the_same_files_for_the_same_roles(root, package, role):
    assert (root / package.replace(".", "/") / role).is_file()


@pytest.mark.parametrize("package", APPLICATIONS)
def test_every_model_is_one_file_of_its_own(package):
    entries = config_class(package).registry.values()
    modules = [entry.target.partition(":")[0] for entry in entries]
    assert len(set(modules)) == len(modules)
    assert all(module.startswith(f"{package}.models.") for module in modules)
    assert all(callable(entry.load()) for entry in entries)


ALLOWED = {
    "monarch_core": set(),
    "lab": {"monarch_core"},
    "data": {"monarch_core", "lab"},
    "pde": {"monarch_core", "lab", "data"},
    "mri": {"monarch_core", "lab", "data"},
}


@pytest.mark.parametrize("package", ALLOWED)
def test_dependencies_point_one_way(root, package):
    forbidden = set(ALLOWED) - ALLOWED[package] - {package}
    for path in (root / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.split(".")[0] for name in names} & forbidden, path


def another(hint: Any, value: Any) -> Any:
    """A value of the same type as an option's, but not the same value."""
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    if typing.get_origin(hint) is typing.Literal:
        return next(choice for choice in typing.get_args(hint) if choice != value)
    if value is None or (parts and typing.get_origin(hint) not in (tuple, list)):
        return another(parts[0] if parts else hint, value if value is not None else another_start(parts[0]))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    return [*value, *value]


def another_start(hint: Any) -> Any:
    return {bool: False, int: 1, float: 0.5, str: "a", Path: "a"}.get(hint, [])


def run_with(package: str, model: str, **changed: Any) -> FinishedRun:
    return FinishedRun(
        Path("run"), defaults(config_class(package), model) | changed, {"data": {"source": "same"}}
    )


def options_of(package: str) -> list[tuple[str, str, str]]:
    """(package, model, option) for every field, with the default model, and every option of every model."""
    kind = config_class(package)
    usual = kind().model
    fields = [field.name for field in dataclasses.fields(kind) if field.name != "options"]
    of_models = [(model, option.name) for model, entry in kind.registry.items() for option in entry.options]
    return [(package, usual, name) for name in fields] + [(package, *pair) for pair in of_models]


@pytest.mark.parametrize(
    ("package", "model", "option"), [case for package in APPLICATIONS for case in options_of(package)]
)
def test_runs_that_differ_in_an_option_never_share_a_row(package, model, option):
    kind = config_class(package)
    hints = typing.get_type_hints(kind) | {each.name: each.type for each in kind.registry[model].options}
    if option == "model":
        value = next(name for name in kind.registry if name != model)
    else:
        value = another(hints[option], defaults(kind, model)[option])
    first, second = run_with(package, model), run_with(package, model, **{option: value})
    found = rows([first, second], kind)
    if option in kind.placement | {"seed", "data"}:  # data counts by its content, which the manifest tells
        assert len(found) == 1
    else:
        assert len(found) == 2
        assert found[0].label != found[1].label


@pytest.mark.parametrize("package", APPLICATIONS)
def test_no_list_of_models_besides_the_registry(root, package):
    """Outside models/, an application's code names a model at most where it is the default."""
    names = set(config_class(package).registry)
    folder = root / package.replace(".", "/")
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
                parts = node.keys if isinstance(node, ast.Dict) else node.elts
                words = {part.value for part in parts if isinstance(part, ast.Constant)}
                assert len(words & names) < 2, f"{path}:{node.lineno} lists models"
