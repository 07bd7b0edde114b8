"""Small data, made once, and an empty folder to work in."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from data.fields.generator import generate
from data.navier_stokes.config import GenerateConfig
from lab.cli import run
from pde.eval import evaluate
from pde.problems import PROBLEMS
from pde.train import train

SMALL: dict[str, dict[str, Any]] = {
    "darcy": {},
    "burgers-walls": {"frames": 4},
    "shallow-water": {"frames": 4, "spin_up": 0},
}
"""What makes samples quick, of the problems with walls and on the sphere."""

MakeFlow = Callable[..., Path]
FieldFile = Callable[[str], Path]
Command = Callable[..., int]


@pytest.fixture
def double_precision() -> Iterator[None]:
    """Modules and random numbers in double precision, the same numbers in every test."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="session")
def make_flow(tmp_path_factory: pytest.TempPathFactory) -> MakeFlow:
    """10 trajectories of 13 frames on 16 x 16 points, viscosity 1e-2."""
    folder = tmp_path_factory.mktemp("flow")

    def made(seed: int = 0) -> Path:
        path = folder / f"flow{seed}.h5"
        size = {"num_samples": 10, "final_time": 13, "grid": 16, "resolution": 16}
        if not path.exists():
            generate(GenerateConfig(nu=1e-2, seed=seed, precision="float32", out=path, workers=1, **size))
        return path

    return made


@pytest.fixture(scope="session")
def flow_file(make_flow: MakeFlow) -> Path:
    """The flows of the seed 0."""
    return make_flow()


@pytest.fixture(scope="session")
def field_file(tmp_path_factory: pytest.TempPathFactory) -> FieldFile:
    """Eight small samples of a problem with walls or on the sphere."""
    folder = tmp_path_factory.mktemp("fields")

    def made(problem: str) -> Path:
        path = folder / f"{problem}.h5"
        if not path.exists():
            options = import_module(f"{PROBLEMS[problem].package}.config").GenerateConfig
            generate(options(num_samples=8, resolution=16, workers=1, out=path, **SMALL[problem]))
        return path

    return made


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, where runs/ and datasets/ appear."""
    monkeypatch.chdir(tmp_path)
    for name in ("MONARCH_DATA", "MONARCH_RUNS", "MONARCH_RUN_NAME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def train_flow(flow_file: Path, workplace: Path) -> Command:
    """`python -m pde.train` on the small flow, with further words; returns its exit status."""
    size = ["--nu", "1e-2", "--num-train", "4", "--num-val", "2", "--num-test", "2"]

    def command(*words: str) -> int:
        usual = ["--preset", "smoke", *size, "--data", str(flow_file)]
        return run("python -m pde.train", {"": train}, [*usual, *words])

    return command


@pytest.fixture
def train_fields(field_file: FieldFile, workplace: Path) -> Command:
    """The same on the small samples of another problem, with a small model."""
    size = ["--num-train", "4", "--num-val", "2", "--num-test", "2", "--width", "4", "--modes", "3"]

    def command(problem: str, *words: str) -> int:
        usual = ["--problem", problem, "--preset", "smoke", "--resolution", "null"]
        return run(
            "python -m pde.train", {"": train}, [*usual, *size, "--data", str(field_file(problem)), *words]
        )

    return command


@pytest.fixture
def evaluation(workplace: Path) -> Command:
    """`python -m pde.eval`; returns its exit status."""
    return lambda *words: run("python -m pde.eval", {"": evaluate}, list(words))
