"""Two distributions from one repository: monarch-core alone, and monarch-science with or without it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import monarch_core

pytest.importorskip("hatchling", reason="hatchling is not installed")


def wheel(folder: Path, out: Path, split: bool = False) -> tuple[set[str], dict[str, list[str]]]:
    """Build a wheel without network; return its top-level packages and its metadata."""
    environment = {**os.environ, "MONARCH_SPLIT": "1" if split else "0"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
        (description,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        message = message_from_bytes(archive.read(description))
    packages = {name.split("/")[0] for name in names if ".dist-info" not in name}
    keys = ("Name", "Version", "Requires-Dist", "License-File")
    metadata = {key: [str(v) for v in message.get_all(key, [])] for key in keys}
    return packages | {name for name in names if name.endswith("py.typed")}, metadata


def needed(metadata: dict[str, list[str]]) -> list[str]:
    return [line for line in metadata["Requires-Dist"] if "extra ==" not in line]


def test_monarch_core_holds_itself_and_needs_only_torch(root, tmp_path):
    packages, metadata = wheel(root / "monarch_core", tmp_path)
    assert packages == {"monarch_core", "monarch_core/py.typed"}
    assert metadata["Name"] == ["monarch-core"]
    assert metadata["License-File"] == ["LICENSE"]
    assert (root / "monarch_core/LICENSE").read_text() == (root / "LICENSE").read_text()
    assert metadata["Version"] == [monarch_core.__version__]
    assert needed(metadata) == ["torch<3,>=2.7"]


def test_monarch_science_depends_on_monarch_core_when_it_is_published(root, tmp_path):
    packages, metadata = wheel(root, tmp_path, split=True)
    assert packages == {"lab", "data", "pde", "mri", "text", "configs"}
    assert f"monarch-core=={monarch_core.__version__}" in needed(metadata)
    assert not any(line.startswith("torch<") for line in needed(metadata))


def test_a_clone_installs_everything_from_itself(root, tmp_path):
    packages, metadata = wheel(root, tmp_path)
    assert packages == {
        "monarch_core",
        "monarch_core/py.typed",
        "lab",
        "data",
        "pde",
        "mri",
        "text",
        "configs",
    }
    assert metadata["Name"] == ["monarch-science"]
    assert metadata["Version"] == [monarch_core.__version__]
    assert "torch<3,>=2.7" in needed(metadata)
    assert not any(line.startswith("monarch-core") for line in needed(metadata))


def test_the_guide_names_every_extra(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    page = (root / "docs/guide/install.md").read_text()
    assert [
        extra for extra in project["optional-dependencies"] if extra != "dev" and f"`{extra}`" not in page
    ] == []
