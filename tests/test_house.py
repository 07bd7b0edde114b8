"""The plan of the house: the same roles under the same names, a model enters once, runs that cannot be mixed up."""

import ast
import dataclasses
import importlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
import typing
from pathlib import Path
from typing import Any

import pytest

from lab.config import ExperimentConfig, defaults
from lab.files import read_json
from lab.runs import FinishedRun, rows

APPLICATIONS = ("lab.demo", "pde", "mri", "text")
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
    "report.py",
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
    "text": {"monarch_core", "lab", "data"},
}


@pytest.mark.parametrize("package", ALLOWED)
def test_dependencies_point_one_way(root, package):
    forbidden = set(ALLOWED) - ALLOWED[package] - {package}
    for path in (root / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.split(".")[0] for name in names} & forbidden, path


TRANSFORMS = {"torch.fft", "numpy.fft", "scipy.fft", "scipy.fftpack", "torch_harmonics"}


@pytest.mark.parametrize("package", ["pde", "mri"])
def test_applications_take_transforms_from_the_core_alone(root, package):
    """No FFT of another library, neither imported nor reached through its package."""
    for path in (root / package).rglob("*.py"):
        tree, names = ast.parse(path.read_text()), {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        used = set(names.values())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.add(f"{names.get(node.value.id, node.value.id)}.{node.attr}")
        found = {name for name in used for each in TRANSFORMS if name == each or name.startswith(f"{each}.")}
        assert not found, f"{path} uses {found}"


def another(hint: Any, value: Any) -> Any:
    """A value of the same type as an option's, but not the same value."""
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    if typing.get_origin(hint) is typing.Literal:
        return next(choice for choice in typing.get_args(hint) if choice != value)
    if value is None or (parts and typing.get_origin(hint) not in (tuple, list)):
        kind = parts[0] if parts else hint
        return another(kind, another_start(kind) if value is None else value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    return [*value, *value]


def another_start(hint: Any) -> Any:
    return {bool: False, int: 1, float: 0.5, str: "a", Path: "a"}.get(hint, [])


def run_with(package: str, usual: str, **changed: Any) -> FinishedRun:
    options = defaults(config_class(package), changed.get("model", usual)) | changed
    return FinishedRun(Path("run"), options, {"data": {"source": "same"}})


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


@dataclasses.dataclass(frozen=True)
class Toy:
    """A model that is added to a copy of an application: one file, and one line in its registry.

    `copied` names the packages that the copy needs; the others are imported from the repository. `train` are the
    options of a training of seconds, `table` those of a table that has the toy and is written to `results`, `listed`
    those of the list of models; `figure` is a picture of an evaluation, `step` the method that a training step calls.
    """

    copied: tuple[str, ...]
    source: str
    entry: str
    train: tuple[str, ...]
    table: tuple[str, ...]
    figure: str
    data: str = ""
    """Statements that make the data that `train` and `table` name."""
    results: str = "table-results"
    listed: tuple[str, ...] = ()
    step: str = "forward"


TOYS = {
    "lab.demo": Toy(
        copied=("lab", "configs"),
        source="""
            from torch import nn

            class Toy(nn.Linear):
                def __init__(self, size):
                    super().__init__(size, size)
            """,
        entry='Entry("toy", "a toy", "lab.demo.models.toy:Toy", title="The Toy")',
        train=("--preset", "smoke"),
        table=("--preset", "smoke", "--models", "toy,dense"),
        figure="learning.png",
    ),
    "pde": Toy(
        copied=("pde",),
        source="""
            from torch import nn
            from pde.models.parts.model import Model

            class Toy(Model):
                def __init__(self, in_channels, resolution, fields=1, *, hidden=3):
                    super().__init__(in_channels, resolution)
                    self.layers = nn.Sequential(nn.Linear(in_channels, hidden), nn.GELU(), nn.Linear(hidden, fields))

                def forward(self, frames):
                    return self.layers(frames)
            """,
        entry=(
            'OperatorEntry("toy", "a toy", "pde.models.toy:Toy", title="The Toy", '
            'options=(Option("hidden", int, 3, "Hidden channels of the toy.", at_least=1),))'
        ),
        train=("--preset", "smoke", "--nu", "0.01", "--data", "flow.h5", "--hidden", "4"),
        table=(
            "--preset",
            "smoke",
            "--nus",
            "0.01",
            "--data",
            "flow.h5",
            "--models",
            "toy",
            "--minutes",
            "null",
        ),
        figure="nu1e-2_sample0.png",
        data="""
            from pathlib import Path
            from data.fields.generator import generate
            from data.navier_stokes.config import GenerateConfig
            size = {"num_samples": 8, "final_time": 12, "grid": 16, "resolution": 16}
            generate(GenerateConfig(nu=1e-2, workers=1, out=Path("flow.h5"), **size))
            """,
    ),
    "mri": Toy(
        copied=("mri",),
        source="""
            import torch
            from data.scans.sense import Sense
            from mri.models.parts.method import Method

            class Toy(Method):
                def __init__(self, plane, density=None, *, power=1):
                    super().__init__(plane, density)
                    self.gain, self.power = torch.nn.Parameter(torch.ones(())), power

                def forward(self, kspace, maps, mask, echo):
                    return self.gain**self.power * Sense(maps).adjoint(kspace)

                def flops(self, coils):
                    return coils
            """,
        entry=(
            'Entry("toy", "a toy", "mri.models.toy:Toy", title="The Toy", '
            'options=(Option("power", int, 3, "Power of the toy\'s gain.", at_least=1),))'
        ),
        train=("--preset", "smoke", "--power", "2"),
        table=("--preset", "smoke", "--models", "toy", "--accs", "2", "--few-shot", "1", "--prefix", "table"),
        figure="reconstruction_echo1.png",
    ),
    "text": Toy(
        copied=("text",),
        source="""
            from text.augment import next_tokens
            from text.models.parts.language_model import LanguageModel

            class Toy(LanguageModel):
                causal = True

                def __init__(self, vocabulary, context, *, echo=3, **options):
                    super().__init__(vocabulary, context, **options)

                def question(self, windows, generators=None):
                    return next_tokens(windows)
            """,
        entry=(
            'Entry("toy", "a toy", "text.models.toy:Toy", title="The Toy", '
            'options=(*OPTIONS, Option("echo", int, 3, "Echo of the toy.", at_least=1)))'
        ),
        train=("--preset", "smoke", "--data", "text.txt", "--echo", "2"),
        table=(
            "--preset",
            "smoke",
            "--data",
            "text.txt",
            "--model",
            "toy",
            "--settings",
            "dense",
            "--seeds",
            "1",
        ),
        figure="learning.png",
        data="""
            from pathlib import Path
            Path("text.txt").write_text("".join(f"line {i} of a text to learn from\\n" for i in range(1000)))
            """,
        results="table-toy-results",
        listed=("--sizes", "tiny"),
        step="hidden",
    ),
}

SESSION = r"""
import importlib, signal, sys
from lab.cli import run

package, train, table, listed, step = {package!r}, {train!r}, {table!r}, {listed!r}, {step!r}
{data}

def say(command, *words):
    print(f"\n$ {{command}}", flush=True)
    module = importlib.import_module(f"{{package}}.{{command}}")
    function = {{"models.__main__": "show", "eval": "evaluate"}}.get(command, command)
    try:
        status = run(f"python -m {{package}}.{{command}}", {{"": getattr(module, function)}}, list(words))
    except SystemExit as end:
        status = end.code
    print(f"status {{status}}", flush=True)

toy = importlib.import_module(f"{{package}}.models").MODELS["toy"].load()
forward = getattr(toy, step)

def interrupted(self, *inputs):
    setattr(toy, step, forward)
    signal.raise_signal(signal.SIGTERM)
    return forward(self, *inputs)

named = (*train, "--model", "toy", "--name", "toy", "--resume")
setattr(toy, step, interrupted)  # as if someone stopped the run at its first step
say("train", *named)
say("train", *named)
say("eval")
say("table", *table)
say("models.__main__", *listed)
say("train", "--help")
"""


@pytest.mark.parametrize("package", TOYS)
def test_a_model_is_one_file_and_one_entry_and_everything_follows(root, package, tmp_path):
    toy, copy = TOYS[package], tmp_path / "copy"
    for name in toy.copied:
        shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    models = copy / package.replace(".", "/") / "models"
    (models / "toy.py").write_text(textwrap.dedent(toy.source))
    registry = (models / "__init__.py").read_text()
    entered = re.sub(r'(MODELS = Registry\(\s*"\w+",\n)', rf"\g<1>    {toy.entry},\n", registry)
    assert entered != registry
    (models / "__init__.py").write_text(entered)

    options = {"package": package, **vars(toy), "data": textwrap.dedent(toy.data)}
    session = textwrap.indent(
        SESSION.format(**options), "    "
    )  # below a guard: data may be made by processes of its own
    (tmp_path / "session.py").write_text(f'if __name__ == "__main__":\n{session}')
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MONARCH_")}
    environment |= {
        "PYTHONPATH": os.pathsep.join((str(copy), str(root))),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "120",
    }
    done = subprocess.run(
        [sys.executable, "session.py"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    _, stopped, resumed, evaluated, tabulated, listed, helped = done.stdout.split("\n$ ")
    runs = tmp_path / "runs" / config_class(package).app

    assert "status 143" in stopped
    assert "continuing from" in resumed
    assert read_json(runs / "toy" / "manifest.json")["status"] == "finished"
    for said, folder in ((evaluated, "results"), (tabulated, toy.results)):
        assert "status 0" in said, done.stdout + done.stderr
        assert any("toy" in table.read_text() for table in (runs / folder).glob("*.md"))
        assert (runs / folder / toy.figure).stat().st_size > 0
    assert re.search(r"\btoy\b.*a toy", listed)
    assert "toy: a toy" in " ".join(helped.split())
    if "Option(" in toy.entry:
        assert re.search(
            r"toy: (Hidden channels|Power|Echo) of the toy('s gain)?\. \(default: 3\)",
            " ".join(helped.split()),
        )
