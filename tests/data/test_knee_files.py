"""Data sets on disk: the layout the reader expects, determinism, resuming, real images, commands."""

import hashlib
import json
import platform
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_features__
from threadpoolctl import threadpool_limits

from data.knee import generate as generating
from data.knee.__main__ import from_images as from_images_command
from data.knee.__main__ import generate as generate_command
from data.knee.__main__ import show as show_command
from data.knee.config import FromImagesConfig, GenerateConfig, ShowConfig
from data.knee.from_images import from_images, kept_share, read_images
from data.knee.generate import ensure, generate
from data.knee.show import show
from data.scans.reader import load_scans
from data.scans.skm_tea.layout import SCANS
from data.scans.skm_tea.scan import SkmTeaScan
from lab.cli import run
from lab.errors import UserError

COMMANDS = {"": generate_command, "from-images": from_images_command, "show": show_command}
SHAPE = (8, 48, 32)
PROJECTIONS = {
    "kspace": [-0.273493 + 0.330219j, -0.141837 - 0.087703j, -0.194567 + 0.035431j],
    "maps": [0.078129 - 0.012286j, 0.000266 + 0.004176j, 0.002417 - 0.001273j],
    "target": [2.054191 + 2.270398j, 0.01283 - 0.009573j, -0.004587 - 0.009251j],
}
"""Projections of a knee's arrays onto three waves; processors round differently at the edge of the maps."""
HASHES = {"kspace": "78e5bb5fe0c8fc9e", "maps": "7ca75d5dfcdce8ae", "target": "d4081a6ec0612072"}


@pytest.fixture(scope="module", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONARCH_DATA", str(tmp_path_factory.mktemp("datasets")))
        patch.setattr(generating, "MASK_ACCELERATIONS", (2.0,))
        yield


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> GenerateConfig:
    return GenerateConfig(subjects=4, out=tmp_path_factory.mktemp("knees"), shape=SHAPE, jobs=1)


@pytest.fixture(scope="module")
def knees(config: GenerateConfig) -> Path:
    return generate(config)


def contents(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: file[name][...] for name in ("kspace", "maps", "target", "masks/poisson_2.0x")}


def times(root: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in sorted((root / SCANS).glob("*.h5"))}


def test_the_reader_takes_the_files_as_skm_tea(knees: Path) -> None:
    splits = {split: load_scans(knees, split) for split in ("train", "val", "test")}
    assert [len(splits[split].scans) for split in ("train", "val", "test")] == [2, 1, 1]
    scan = splits["train"].scans[0]
    assert isinstance(scan, SkmTeaScan)
    assert scan.matrix_shape == SHAPE
    assert scan.acquired_grid == (40, 16)
    assert scan.num_coils == 8
    assert scan.mask(2.0) is not None
    kspace, maps, target = scan.read(3, 1)
    assert kspace.shape == maps.shape == (8, 48, 32)
    assert float(target.abs().max()) > 0


def test_files_say_that_they_are_synthetic_and_how_they_were_made(knees: Path) -> None:
    with h5py.File(knees / SCANS / "MTR_001.h5") as file:
        attributes = dict(file.attrs)
    assert "synthetic" in attributes["origin"]
    assert {"subject_seed", "traits", "noise", "version", "fingerprint", "calibration_region"} <= set(
        attributes
    )
    annotations = json.loads((knees / "annotations" / "v1.0.0" / "train.json").read_text())
    assert "not SKM-TEA" in annotations["info"]["description"]


def test_knees_are_those_of_their_version(knees: Path) -> None:
    """Whoever changes the numbers raises `data.knee.generate.VERSION`: folders and published scores rely on them."""
    found = contents(knees / SCANS / "MTR_001.h5")
    for name, expected in PROJECTIONS.items():
        values = found[name].astype(np.complex128).ravel()
        waves = np.cos(np.arange(len(values)) * np.array([[0.1], [1.0], [2.0]]))
        assert np.allclose(waves @ values / np.linalg.norm(values), expected, rtol=0, atol=5e-4)


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64") or __cpu_features__["AVX512F"],
    reason="other libraries, and processors with AVX-512, round otherwise",
)
def test_knees_are_bit_for_bit_those_of_their_version(knees: Path) -> None:
    found = contents(knees / SCANS / "MTR_001.h5")
    hashes = {name: hashlib.sha256(found[name].tobytes()).hexdigest()[:16] for name in HASHES}
    assert hashes == HASHES


def test_numbers_do_not_depend_on_how_many_threads_there_are(
    knees: Path, config: GenerateConfig, tmp_path: Path
) -> None:
    wanted = contents(knees / SCANS / "MTR_001.h5")
    with threadpool_limits(2, user_api="blas"):
        again = generate(replace(config, subjects=1, out=tmp_path))
    found = contents(again / SCANS / "MTR_001.h5")
    assert all(np.array_equal(found[name], wanted[name]) for name in HASHES)


def test_subjects_differ(knees: Path) -> None:
    first, second = (contents(knees / SCANS / f"MTR_00{i}.h5")["target"] for i in (1, 2))
    assert np.abs(np.abs(first) - np.abs(second)).mean() > 0.1 * np.abs(first).mean()


def test_a_subject_is_the_same_in_any_run_and_on_any_number_of_processes(
    knees: Path, config: GenerateConfig, tmp_path: Path
) -> None:
    again = generate(replace(config, subjects=2, out=tmp_path, jobs=2))
    for name in ("MTR_001.h5", "MTR_002.h5"):
        want, got = contents(knees / SCANS / name), contents(again / SCANS / name)
        for key, value in want.items():
            np.testing.assert_array_equal(got[key], value, err_msg=key)


def test_finished_subjects_are_kept_and_missing_ones_made(knees: Path, config: GenerateConfig) -> None:
    before, lost = times(knees), contents(knees / SCANS / "MTR_002.h5")
    (knees / SCANS / "MTR_002.h5").unlink()
    leftover = knees / SCANS / ".MTR_002.999999999.tmp.h5"
    leftover.write_bytes(b"half")
    generate(config)
    after = times(knees)
    assert {name for name in before if before[name] != after[name]} == {"MTR_002.h5"}
    assert not leftover.exists()
    np.testing.assert_array_equal(contents(knees / SCANS / "MTR_002.h5")["kspace"], lost["kspace"])


def test_knees_of_other_options_are_not_mixed_in(knees: Path, config: GenerateConfig) -> None:
    with pytest.raises(UserError, match="other options"):
        generate(replace(config, noise=0.5))


def test_a_broken_file_is_named(config: GenerateConfig, tmp_path: Path) -> None:
    path = tmp_path / SCANS / "MTR_001.h5"
    path.parent.mkdir()
    path.write_bytes(b"no HDF5")
    with pytest.raises(UserError, match=r"MTR_001\.h5 cannot be read"):
        generate(replace(config, out=tmp_path))


def test_an_interrupted_subject_leaves_nothing(
    config: GenerateConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(generating, "render", interrupted)
    with pytest.raises(KeyboardInterrupt):
        generate(replace(config, out=tmp_path))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_ensure_makes_the_built_in_knees_once(knees: Path, config: GenerateConfig) -> None:
    before = times(knees)
    assert ensure(4, out=knees, shape=SHAPE) == knees
    assert times(knees) == before


def test_real_images_become_scans_marked_as_simulated(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    blob = np.hypot(np.arange(64)[:, None] - 30, np.arange(48) - 24) < 18
    images = (blob * rng.uniform(0.1, 1.0, (4, 64, 48))).astype(np.float32)
    np.savez(tmp_path / "knees.npz", x=images * 1e6)
    root = from_images(FromImagesConfig(tmp_path / "knees.npz", out=tmp_path / "out"))
    scan = load_scans(root, "train").scans[0]
    assert scan.matrix_shape == (1, 64, 48)
    assert scan.num_echoes == 1
    with h5py.File(root / SCANS / "MTR_001.h5") as file:
        assert file.attrs["origin"] == "real magnitudes, simulated coils"
        target = file["target"][0, ..., 0, 0]
    assert np.corrcoef(np.abs(target)[blob], images[0][blob])[0, 1] > 0.9
    assert np.abs(np.angle(target[blob])).std() > 0.05, "magnitudes were given a phase"
    assert len(show(ShowConfig(root))) == 3


def test_two_echoes_are_chosen_by_their_times(tmp_path: Path) -> None:
    volume = np.random.default_rng(0).random((5, 2, 40, 40)) + np.arange(5)[:, None, None, None]
    np.savez(tmp_path / "echoes.npz", v=volume, te=np.array([8.0, 20.0, 30.0, 41.0, 50.0]))
    images = read_images(tmp_path / "echoes.npz", FromImagesConfig(Path("echoes.npz")))
    assert images.echo_times == [8.0, 41.0]
    assert images.subjects[0].shape == (2, 2, 40, 40)


def test_nifti_volumes_keep_their_spacing(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    volume = np.random.default_rng(0).random((3, 40, 48)).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(volume, np.diag([4.0, 0.5, 0.6, 1.0])), tmp_path / "v.nii.gz")
    images = read_images(tmp_path / "v.nii.gz", FromImagesConfig(Path("v.nii.gz")))
    assert images.subjects[0].shape == (1, 3, 40, 48)
    np.testing.assert_allclose(images.spacing, (4.0, 0.5, 0.6), rtol=1e-6)


def test_zero_padding_of_a_real_scan_is_found_and_of_another_not(shared: Path) -> None:
    with np.load(shared / "mri" / "knee_mese_8e24s.npz") as file:
        padded = kept_share(file["v"][0].astype(np.float32))
    with np.load(shared / "mri" / "knee_mridata20_rss_320x256.npz") as file:
        whole = kept_share(file["x"])
    assert 0.75 < padded[0] < 0.85
    assert whole == (1.0, 1.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--subjects", "0"], "--subjects must be at least 1"),
        (["--shape", "[8,31,24]"], "--shape takes"),
        (["--noise", "-1"], "--noise takes"),
        (["--coils", "7"], "--coils takes one of 8, 16"),
        (["from-images", "absent.npz"], "there is no file absent.npz"),
        (["show", "absent"], "absent"),
    ],
)
def test_mistakes_are_one_line_and_status_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("python -m data.knee", COMMANDS, words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 40, 40)), "not all zero"),
        (np.full((2, 40, 40), np.nan), "finite"),
        (np.full((2, 40, 40), "x"), "real magnitudes"),
        (np.ones((40, 40)), "expected"),
        (np.ones((2, 16, 16)), "too small"),
    ],
)
def test_unusable_images_are_refused(array: np.ndarray, message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", x=array)
    with pytest.raises(UserError, match=message):
        read_images(tmp_path / "bad.npz", FromImagesConfig(Path("bad.npz")))
