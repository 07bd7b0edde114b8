"""A few small synthetic knees, made once, and an empty folder to work in."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from data.knee.generate import ensure
from data.scans.sense import Sense, sample
from data.scans.skm_tea.format import read_annotations
from data.scans.skm_tea.layout import SPLITS, scan_path, write_annotations
from lab.errors import UserError
from mri.experiment import Reconstruction


@pytest.fixture(scope="session", autouse=True)
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One folder for masks and statistics of the whole session: they need not be made again for every test."""
    folder = tmp_path_factory.mktemp("datasets")
    before = os.environ.get("MONARCH_DATA")
    os.environ["MONARCH_DATA"] = str(folder)
    os.environ.pop("SKM_TEA_ROOT", None)
    yield folder
    os.environ.pop("MONARCH_DATA")
    if before is not None:
        os.environ["MONARCH_DATA"] = before


@pytest.fixture(scope="session")
def knees(datasets: Path) -> Path:
    """Six synthetic knees of 12 x 32 x 24: 3 to train, 1 to validate, 2 to test."""
    return ensure(6, out=datasets / "knees-12x32x24", shape=(12, 32, 24), jobs=1)


@pytest.fixture(scope="session")
def mixed_knees(datasets: Path, knees: Path) -> Path:
    """Those knees and three of 6 x 36 x 28: of each size some to train, to validate and to test."""
    others, root = ensure(3, out=datasets / "others", shape=(6, 36, 28), jobs=1), datasets / "mixed"
    for split in SPLITS:
        records = []
        for source, names in ((knees, "{}"), (others, "W{}")):
            for record in read_annotations(source, split):
                named = replace(
                    record, file_name=names.format(record.file_name), scan_id=names.format(record.scan_id)
                )
                path = scan_path(root, named.file_name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.hardlink_to(scan_path(source, record.file_name))
                records.append(named)
        write_annotations(root, split, records, "knees of two sizes")
    return root


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, where runs/ appear."""
    monkeypatch.chdir(tmp_path)
    for name in ("MONARCH_RUNS", "MONARCH_RUN_NAME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


class Problem:
    """A random SENSE problem: maps with unit sum of squares, an image, a mask, what the coils measured."""

    def __init__(
        self, plane: tuple[int, int], coils: int = 3, batch: int = 2, dtype: torch.dtype = torch.complex128
    ):
        self.maps = torch.randn(batch, coils, *plane, dtype=dtype)
        self.maps = self.maps / self.maps.abs().square().sum(1, keepdim=True).sqrt()
        self.image = torch.randn(batch, *plane, dtype=dtype)
        self.mask = torch.rand(batch, *plane) < 0.5
        self.full = Sense(self.maps)(self.image)
        self.kspace = sample(self.full, self.mask)
        self.echo = torch.arange(batch) % 2

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The arguments of a method."""
        return self.kspace, self.maps, self.mask, self.echo


@pytest.fixture
def problem() -> type[Problem]:
    """The class, to be made in the size a test wants."""
    return Problem


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """A block in which training stops at the beginning of its second epoch."""

    def stop(self: Reconstruction, *_: object) -> None:
        if self.current_epoch == 1:
            raise UserError("stopped")

    @contextmanager
    def block() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr(Reconstruction, "on_train_epoch_start", stop)
            with pytest.raises(UserError, match="stopped"):
                yield

    return block
