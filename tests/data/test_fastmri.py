"""fastMRI files through the slice interface, with ESPIRiT maps."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from data.scans import maps as kept_maps
from data.scans.espirit import MapEstimator
from data.scans.fastmri.scan import FastMriScan
from data.scans.reader import load_scans, open_scan
from data.scans.sense import Sense, centre, combine, ifft2c
from data.scans.slices import SliceDataset
from lab.errors import UserError
from tests.data.mri_files import fastmri_scan, smooth_maps


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where maps and statistics are kept; shared by the tests, so that they are estimated once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def data_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONARCH_DATA", str(cache))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scans of one shape and one of another."""
    root = tmp_path_factory.mktemp("fastmri")
    fastmri_scan(root / "multicoil_train" / "file1.h5")
    fastmri_scan(root / "multicoil_train" / "file2.h5", slices=1)
    fastmri_scan(root / "multicoil_train" / "file3.h5", width=36)
    return root


def file1(root: Path) -> FastMriScan:
    return FastMriScan(root / "multicoil_train" / "file1.h5")


def test_slices_hold_the_stored_kspace_and_its_sense_combination(root: Path) -> None:
    dataset = SliceDataset(load_scans(root, "train").scans)
    assert [(one.scan_id, one.slice_index, one.echo) for one in dataset] == [  # type: ignore[attr-defined]
        ("file1", 0, 0),
        ("file1", 1, 0),
        ("file2", 0, 0),
        ("file3", 0, 0),
        ("file3", 1, 0),
    ]
    one = dataset[1]
    with h5py.File(root / "multicoil_train" / "file1.h5") as file:
        assert np.array_equal(one.kspace.numpy(), file["kspace"][1])
    torch.testing.assert_close(one.target, Sense(one.maps).adjoint(one.kspace))
    targets = np.stack([dataset[position].target.abs().double().numpy() for position in (0, 1)])
    assert one.scale == pytest.approx(targets.std(), rel=1e-5)


def test_magnitude_of_the_target_is_the_distributed_rss_image(root: Path) -> None:
    one = file1(root)
    for slice_index in range(one.num_slices):
        target, rss = one.read(slice_index)[2][8:-8, 4:-4], one.rss(slice_index)
        inside = rss > 0.2 * rss.max()
        assert ((target.abs() - rss)[inside].norm() / rss[inside].norm()) < 0.02


def test_espirit_finds_the_coils_that_made_the_data(root: Path) -> None:
    """Maps agree with the true ones up to the common phase, which no method can know."""
    estimated, target = file1(root).read(0)[1:]
    inside = target.abs() > 0.3 * target.abs().max()
    true = smooth_maps(4, 48, 40)
    phase = (estimated.conj() * true).sum(0)
    aligned = estimated * phase / phase.abs().clamp(min=1e-9)
    assert ((aligned - true)[:, inside].norm() / true[:, inside].norm()) < 0.05


def test_maps_are_estimated_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = file1(root)
    expected = first.read(0)[1]
    monkeypatch.setattr(kept_maps, "MapEstimator", lambda *_: pytest.fail("estimated again"))
    assert torch.equal(file1(root).read(0)[1], expected)


def test_damaged_maps_are_named(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONARCH_DATA", str(tmp_path))
    FastMriScan(root / "multicoil_train" / "file2.h5").read(0)
    (path,) = tmp_path.rglob("*.npy")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UserError, match=r"file2-.*npy is not a whole file of maps; delete it"):
        FastMriScan(root / "multicoil_train" / "file2.h5").read(0)


def test_header_gives_the_acquired_lines_and_the_voxel_size(root: Path) -> None:
    one = open_scan(root / "multicoil_train" / "file1.h5")
    assert one.acquired_grid == (48, 36)
    assert one.voxel_spacing == (4.5, 1.0, 2.0)
    assert not one.read(0, 0)[0][..., :2].any()
    assert one.read(0, 0)[0][..., 2:-2].abs().sum(1).all()


@pytest.mark.parametrize(
    ("acquisition", "axes"), [("CORPD_FBK", ["AP", "SI", "LR"]), ("AXT2", ["SI", "AP", "LR"])]
)
def test_the_acquisition_tells_how_slices_lie(acquisition: str, axes: list[str], tmp_path: Path) -> None:
    fastmri_scan(tmp_path / "file.h5", slices=1)
    with h5py.File(tmp_path / "file.h5", "a") as file:
        file.attrs["acquisition"] = acquisition
    assert open_scan(tmp_path / "file.h5").directions == axes


def test_scans_of_every_size_take_part_unless_one_is_wanted(root: Path) -> None:
    assert [scan.scan_id for scan in load_scans(root, "train").scans] == ["file1", "file2", "file3"]
    selection = load_scans(root, "train", plane=(48, 40))
    assert [scan.scan_id for scan in selection.scans] == ["file1", "file2"]
    assert selection.dropped == {"file3": "its slices are 48 x 36, not 48 x 40."}
    assert [scan.scan_id for scan in load_scans(root, "train", plane=(48, 36)).scans] == ["file3"]


def test_validation_and_test_have_no_volume_in_common(tmp_path: Path) -> None:
    for number in range(5):
        fastmri_scan(tmp_path / "multicoil_val" / f"file{number}.h5", slices=1)
    selections = {split: load_scans(tmp_path, split) for split in ("val", "test")}
    names = {split: [scan.scan_id for scan in found.scans] for split, found in selections.items()}
    assert names == {"val": ["file0", "file2", "file4"], "test": ["file1", "file3"]}
    assert "test: 2 of the 5 volumes in multicoil_val" in selections["test"].report()
    assert "none in common" in selections["val"].report()


def test_bad_files_are_named_or_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "multicoil_train"
    for name in ("good", "nothing", "masked", "headless", "torn"):
        fastmri_scan(folder / f"{name}.h5", slices=1)
    with h5py.File(folder / "nothing.h5", "r+") as file:
        del file["kspace"]
    with h5py.File(folder / "masked.h5", "r+") as file:
        mask = np.zeros(40, np.float32)
        mask[::4] = mask[14:26] = 1
        file["kspace"][...] = file["kspace"][...] * mask
        file["mask"] = mask
        del file["reconstruction_rss"]
    with h5py.File(folder / "headless.h5", "r+") as file:
        del file["ismrmrd_header"]
        file["ismrmrd_header"] = "<ismrmrdHeader/>"
    (folder / "torn.h5").write_bytes((folder / "torn.h5").read_bytes()[:3000])
    for name, words in {
        "nothing": "has no data set 'kspace'",
        "headless": "ISMRMRD header cannot be used",
        "torn": "is not a whole HDF5 file",
    }.items():
        with pytest.raises(UserError, match=f"{name}.h5.*{words}"):
            FastMriScan(folder / f"{name}.h5")
    with pytest.raises(UserError, match=r"headless.h5"):  # the first in the order of names
        load_scans(tmp_path, "train")
    selection = load_scans(tmp_path, "train", skip_bad=True)
    assert [scan.scan_id for scan in selection.scans] == ["good"]
    assert set(selection.dropped) == {"nothing", "masked", "headless", "torn"}
    assert "is undersampled" in selection.dropped["masked"]
    undersampled = FastMriScan(folder / "masked.h5")  # as fastMRI's test files are; to be reconstructed
    assert undersampled.sampling.calibration == (48, 12)
    with pytest.raises(UserError, match=r"--data names .* but there is no .*multicoil_val \(fastMRI\)"):
        load_scans(tmp_path, "val")


def test_espirit_explains_a_real_brain(shared: Path) -> None:
    """Seven real coils: where there are maps, they reproduce the coil images from one image, but for noise."""
    path = shared / "mri" / "mc_brain7_256x216.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is absent from the shared data")
    kspace = np.load(path)["kspace"]
    region = torch.from_numpy(kspace[:, centre(24, 256), centre(24, 216)])
    maps = MapEstimator((256, 216))(region[None])[0]
    power = maps.abs().square().sum(0)
    support = power > 0.5
    assert 0.3 < support.float().mean() < 0.7
    torch.testing.assert_close(power[support], torch.ones_like(power[support]), rtol=1e-4, atol=1e-4)
    assert not power[~support].any()
    coil_images = ifft2c(torch.from_numpy(kspace))
    explained = maps * combine(coil_images, maps)
    assert (explained - coil_images)[:, support].norm() < 0.12 * coil_images[:, support].norm()
