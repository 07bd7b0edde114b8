"""Fixtures that every package's tests share."""

from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """One torch thread per test worker: more would fight for the cores, and change summation orders."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Each test starts from the same random state, whatever ran before it."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data for tests, which is not part of the repository."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder with real data (shared/, beside the repository) is absent")
    return folder
