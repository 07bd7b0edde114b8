"""The reader: formats are tried in order, and a new one is a class and a line in the list."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from data.scans import reader
from data.scans.format import Format
from data.scans.reader import FORMATS, load_scans, open_scan
from data.scans.scan import Scan
from data.scans.sense import Sense
from data.scans.slices import SliceDataset
from lab.errors import UserError
from tests.data.mri_files import fastmri_scan, skm_tea_root, smooth_maps


class NumpyScan(Scan):
    """K-space (slices, coils, ky, kz) in a file of its own ending, with maps that everybody knows."""

    origin = "a test"

    def __init__(self, path: Path) -> None:
        self.path, self.scan_id = path, path.stem
        slices, self.num_coils, ky, kz = np.load(path, mmap_mode="r").shape
        self.matrix_shape, self.acquired_grid = (slices, ky, kz), (ky, kz)

    def read(self, slice_index: int, echo: int) -> tuple[Tensor, Tensor, Tensor]:
        kspace = torch.from_numpy(np.load(self.path)[slice_index])
        maps = smooth_maps(*kspace.shape)
        return kspace, maps, Sense(maps).adjoint(kspace)


class Numpy(Format):
    name = "numpy"
    pattern = "*.mine"

    def owns_file(self, path: Path) -> bool:
        return path.suffix == ".mine"

    def open(self, path: Path) -> NumpyScan:
        return NumpyScan(path)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONARCH_DATA", str(tmp_path / "cache"))


def test_a_new_format_is_a_class_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train").mkdir()
    for name, width in (("a", 6), ("b", 6), ("c", 8)):
        with (tmp_path / "train" / f"{name}.mine").open("wb") as file:
            np.save(file, np.ones((2, 3, 8, width), np.complex64))
    monkeypatch.setattr(reader, "FORMATS", (*FORMATS, Numpy()))
    assert open_scan(tmp_path / "train" / "a.mine").matrix_shape == (2, 8, 6)
    selection = load_scans(tmp_path, "train")
    assert [scan.scan_id for scan in selection.scans] == ["a", "b", "c"]  # sizes may differ
    assert not selection.dropped
    slices = SliceDataset(selection.scans)
    assert len(slices) == 6
    assert slices[3].scale > 0


def test_each_format_knows_its_own_files_and_no_others(tmp_path: Path) -> None:
    fastmri_scan(tmp_path / "fast" / "multicoil_train" / "file.h5")
    skm_tea_root(tmp_path / "tea")
    files = {
        "SKM-TEA": next((tmp_path / "tea").rglob("*.h5")),
        "fastMRI": tmp_path / "fast" / "multicoil_train" / "file.h5",
    }
    for name, path in files.items():
        assert [form.name for form in FORMATS if form.owns_file(path)] == [name]
        assert open_scan(path).origin.endswith({"SKM-TEA": "own data in SKM-TEA's layout"}.get(name, name))
    for name, root in {"SKM-TEA": "tea", "fastMRI": "fast"}.items():
        assert [form.name for form in FORMATS if form.owns_folder(tmp_path / root, "train")] == [name]


def test_files_of_no_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        open_scan(tmp_path / "absent.h5")
    (tmp_path / "page.h5").write_text("html")
    with pytest.raises(
        UserError, match=r"page.h5 is not a scan in a format known here \(SKM-TEA, fastMRI, ISMRMRD, "
    ):
        open_scan(tmp_path / "page.h5")
    fastmri_scan(tmp_path / "torn.h5")
    (tmp_path / "torn.h5").write_bytes((tmp_path / "torn.h5").read_bytes()[:3000])
    with pytest.raises(UserError, match=r"torn.h5 is not a whole HDF5 file"):
        open_scan(tmp_path / "torn.h5")
