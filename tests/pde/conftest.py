"""A small flow, made once, and an empty folder to work in."""

from pathlib import Path

import pytest

from data.fields.generator import generate
from data.navier_stokes.config import GenerateConfig


@pytest.fixture(scope="session")
def flow_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10 trajectories of 13 frames on 16 x 16 points, viscosity 1e-2."""
    out = tmp_path_factory.mktemp("flow") / "flow.h5"
    config = GenerateConfig(
        nu=1e-2,
        num_samples=10,
        final_time=13,
        grid=16,
        resolution=16,
        precision="float32",
        out=out,
        workers=1,
    )
    return generate(config)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, where runs/ and datasets/ appear."""
    monkeypatch.chdir(tmp_path)
    for name in ("MONARCH_DATA", "MONARCH_RUNS", "MONARCH_RUN_NAME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
