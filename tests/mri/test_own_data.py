"""Own scans through the commands: reconstructed by classical methods, trained on, evaluated, in every format."""

import csv
import json
import re
import shlex
import sys
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import pytest
import torch
from scipy.io import savemat

from data.scans.__main__ import info, show
from data.scans.reader import load_scans, open_scan
from data.scans.slices import SliceDataset, collate
from lab import memory
from lab.cli import run
from lab.errors import UserError
from mri.config import ReconstructConfig, TrainConfig
from mri.eval import evaluate
from mri.losses import misfit
from mri.models import build
from mri.predictor import Predictor, load
from mri.reconstruct import reconstruct
from mri.supervision import SelfSupervised, density_of_one, reserve
from mri.table import table
from mri.train import train
from mri.volumes import write_volume
from tests.data import own_files as own
from tests.data.own_files import COILS, PLANE

FULL = own.kspace(2)
TRUTH = np.abs(own.phantom(2))


def reconstruct_with(*words: str) -> int:
    return run("python -m mri.reconstruct", {"": reconstruct}, list(words))


def error(image: np.ndarray) -> float:
    inside = TRUTH > 0.3
    return float(np.linalg.norm((np.abs(image) - TRUTH)[inside]) / np.linalg.norm(TRUTH[inside]))


@pytest.fixture
def undersampled(workplace: Path) -> Path:
    np.save("scan.npy", FULL * own.lines())
    Path("scan.json").write_text('{"voxel_spacing": [4, 0.5, 1.5], "orientation": ["SI", "AP", "LR"]}')
    return Path("scan.npy")


@pytest.mark.parametrize("model", ["sense", "cg-sense", "l1-wavelet"])
def test_classical_methods_reconstruct_an_undersampled_scan_without_training(model, undersampled, capsys):
    words = ["--model", model, "--input", str(undersampled), "--out", "out.npy", "--part", "complex"]
    if model != "sense":
        words += ["--strength", "0.001"]
    assert reconstruct_with(*words) == 0
    out = capsys.readouterr().out
    assert "undersampled, acceleration 1.67 on 48 x 40, calibration region 48 x 16" in out
    assert "memory: reconstructing 2 slices needs about" in out
    image = np.load("out.npy")
    assert image.shape == (2, *PLANE, 1)
    assert error(image[..., 0]) < {"sense": 0.5, "cg-sense": 0.05, "l1-wavelet": 0.06}[model]


def test_a_full_scan_is_taken_as_it_is_or_sampled(workplace, capsys):
    np.save("full.npy", FULL)
    words = ["--model", "cg-sense", "--input", "full.npy", "--out", "out.npy", "--strength", "0.001"]
    assert reconstruct_with(*words) == 0
    assert "fully sampled on 48 x 40, taken as it is" in capsys.readouterr().out
    assert error(np.load("out.npy")[..., 0]) < 0.02
    assert reconstruct_with(*words, "--acc", "2", "--mask", "random", "--slices", "1:2") == 0
    out = capsys.readouterr().out
    assert "acceleration 2 simulated" in out
    assert "against full sampling: pSNR" in out
    assert np.load("out.npy").shape == (1, *PLANE, 1)


def test_nifti_bart_and_parts(undersampled):
    words = ["--model", "sense", "--input", str(undersampled)]
    assert reconstruct_with(*words, "--out", "c.npy", "--part", "complex") == 0
    image = np.load("c.npy")
    for part, values in (("magnitude", np.abs(image)), ("phase", np.angle(image)), ("complex", image)):
        assert reconstruct_with(*words, "--out", "out.nii.gz", "--part", part) == 0
        written = nibabel.load("out.nii.gz")
        np.testing.assert_allclose(np.asarray(written.dataobj), values, rtol=1e-6, atol=1e-6)
    assert np.allclose(written.header.get_zooms()[:3], (4, 0.5, 1.5))
    assert reconstruct_with(*words, "--out", "out.cfl") == 0
    sizes = Path("out.hdr").read_text().splitlines()[1].split()
    assert [int(size) for size in sizes] == [
        *PLANE,
        *[1] * 11,
        2,
        1,
        1,
    ]  # slices of a 2-D scan are dimension 13
    raw = np.fromfile("out.cfl", "<c8").reshape((*PLANE, 2), order="F")
    np.testing.assert_array_equal(raw, np.moveaxis(image[..., 0], 0, -1))


def test_dicom_keeps_the_geometry(undersampled, capsys):
    words = ["--model", "sense", "--input", str(undersampled)]
    assert reconstruct_with(*words, "--out", "series", "--slices", "1:2") == 0
    assert reconstruct_with(*words, "--out", "whole") == 0
    assert reconstruct_with(*words, "--out", "v.nii") == 0
    volume = nibabel.load("v.nii")
    files = sorted(
        (pydicom.dcmread(path) for path in Path("whole").iterdir()), key=lambda file: file.InstanceNumber
    )
    assert len(files) == 2
    assert len({file.SeriesInstanceUID for file in files}) == 1
    assert files[0].SeriesInstanceUID != pydicom.dcmread(next(Path("series").iterdir())).SeriesInstanceUID
    for index, file in enumerate(files):
        np.testing.assert_allclose(file.PixelSpacing, (0.5, 1.5))
        assert float(file.SliceThickness) == 4
        row, column = 3, 7
        across, down = np.array(file.ImageOrientationPatient, float).reshape(2, 3)
        place = np.array(file.ImagePositionPatient, float) + down * row * 0.5 + across * column * 1.5
        world = (volume.affine @ [index, row, column, 1])[:3] * [-1, -1, 1]
        np.testing.assert_allclose(place, world, atol=1e-4)
        values = file.pixel_array * float(file.RescaleSlope) + float(file.RescaleIntercept)
        np.testing.assert_allclose(values, volume.get_fdata()[index, :, :, 0], atol=float(file.RescaleSlope))
    alone = pydicom.dcmread(next(Path("series").iterdir()))
    np.testing.assert_allclose(
        np.array(alone.ImagePositionPatient, float), np.array(files[1].ImagePositionPatient, float), atol=1e-4
    )
    capsys.readouterr()
    assert reconstruct_with(*words, "--out", "whole") == 2
    assert "whole is not empty, and series are not mixed" in capsys.readouterr().err
    assert reconstruct_with(*words, "--out", "other", "--part", "complex") == 2
    assert "DICOM files hold no complex numbers" in capsys.readouterr().err


def test_dicom_gives_an_echo_no_time_but_its_own(workplace):
    np.save("scan.npy", np.stack([FULL[:1]] * 3, axis=1))
    Path("scan.json").write_text('{"repetition_ms": 100, "echo_ms": 5, "flip_degrees": 15}')
    images = np.ones((1, *PLANE, 3))
    write_volume(Path("series"), images, open_scan("scan.npy"))
    times = {file.EchoNumbers: file.EchoTime for file in map(pydicom.dcmread, Path("series").iterdir())}
    assert times == {1: 5, 2: None, 3: None}


def test_t2_of_a_knee_is_written_in_milliseconds(knees, workplace, capsys):
    scan = load_scans(knees, "test").scans[0]
    words = ["--model", "sense", "--input", str(scan.path), "--out", "knee.nii.gz", "--t2", "--slices", "4:8"]
    assert reconstruct_with(*words) == 0
    found = nibabel.load("knee_t2.nii.gz").get_fdata()[..., 0]
    muscle = scan.segmentation().labels[4:8] == 1
    assert 20 < np.median(found[muscle & (found > 0)]) < 60
    assert (scan.echo_time(0), scan.echo_time(1)) == (7.5, 42.5)
    assert Path("knee_t2.png").stat().st_size > 5_000
    np.save("one.npy", FULL)
    assert reconstruct_with("--model", "sense", "--input", "one.npy", "--t2") == 2
    assert "needs the two echoes of qDESS, but one has 1" in capsys.readouterr().err
    assert not Path("reconstruction.nii.gz").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--input", "scan.npy"], "either --weights of a finished run or --model"),
        (["--input", "scan.npy", "--model", "sense", "--weights", "scan.npy"], "either --weights"),
        (
            ["--input", "scan.npy", "--model", "unet"],
            "unet learns from scans: train it and give its --weights; sense, ",
        ),
        (["--input", "scan.npy", "--model", "dc-sense"], "dc-sense learns from scans"),
        (["--input", "scan.npy", "--model", "cg-sens"], "did you mean cg-sense?"),
        (
            ["--input", "scan.npy", "--model", "sense", "--strength", "1"],
            "--strength does nothing with this method",
        ),
        (
            ["--input", "scan.npy", "--model", "sense", "--acc", "4"],
            "is undersampled, .* already; leave out --acc",
        ),
        (["--input", "scan.npy", "--model", "sense", "--out", "x.dcm"], "a folder for DICOM files"),
        (
            ["--input", "scan.npy", "--model", "sense", "--slices", "1:9"],
            "--slices takes FIRST:LAST within 0:2",
        ),
        (["--input", "no.npy", "--model", "sense"], "there is no file no.npy"),
        (["--model", "sense"], "--input is missing"),
        (
            ["--input", "scan.npy", "--model", "cg-sense", "--strength", "-1"],
            "--strength must be at least 0, not -1",
        ),
        (
            ["--input", "scan.npy", "--model", "sense", "--threads", "0"],
            "--threads must be at least 1, not 0",
        ),
    ],
)
def test_mistakes_get_a_sentence_before_any_work(undersampled, capsys, words, sentence):
    assert reconstruct_with(*words) == 2
    assert re.search(sentence, capsys.readouterr().err)
    assert not Path("reconstruction.nii.gz").exists()


@pytest.mark.parametrize(("package", "out"), [("nibabel", "a.nii"), ("pydicom", "series")])
def test_a_missing_package_is_named_before_any_work(package, out, undersampled, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    assert reconstruct_with("--model", "sense", "--input", str(undersampled), "--out", out) == 2
    printed = capsys.readouterr()
    assert f"need {package}; run: pip install" in printed.err
    assert "coil maps" not in printed.out


def test_a_series_that_cannot_be_written_is_refused_before_any_work(undersampled, capsys):
    Path("full").mkdir()
    Path("full/other.dcm").touch()
    Path("maps_t2").mkdir()
    Path("maps_t2/other.dcm").touch()
    words = ["--model", "sense", "--input", str(undersampled)]
    for more, sentence in (
        (["--out", "full"], "full is not empty"),
        (["--out", "new", "--part", "complex"], "DICOM files hold no complex numbers"),
        (["--out", "maps", "--t2"], "maps_t2 is not empty"),
    ):
        assert reconstruct_with(*words, *more) == 2
        heard = capsys.readouterr()
        assert sentence in heard.err
        assert "reconstructing" not in heard.out + heard.err


def test_slices_too_small_to_be_scored_are_reconstructed_but_not_trained_on(workplace, capsys):
    Path("mine").mkdir()
    for number in range(3):
        np.save(f"mine/scan{number}.npy", own.kspace(1, (24, 10)))
    words = ["--model", "sense", "--input", "mine/scan0.npy", "--out", "out.npy", "--acc", "2"]
    assert reconstruct_with(*words) == 0
    assert "slices below 11 x 11 voxels are not scored" in capsys.readouterr().out
    assert np.load("out.npy").shape == (1, 24, 10, 1)
    assert run("python -m mri.train", {"": train}, ["--preset", "smoke", "--data", "mine"]) == 2
    assert "slices of at least 11 x 11 voxels are needed to train and to score" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_too_little_memory_is_refused_with_a_remedy(undersampled, monkeypatch, capsys):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    assert reconstruct_with("--model", "sense", "--input", str(undersampled)) == 2
    words = "reconstructing 2 slices needs about 3 MB of memory, but only 1 MB is free; reconstruct in parts"
    assert words in capsys.readouterr().err


def as_bart(path: Path, kspace: np.ndarray) -> None:
    own.write_cfl(
        path.with_suffix(".cfl"), kspace.transpose(2, 3, 1, 0), (*PLANE, 1, COILS, *[1] * 9, len(kspace))
    )


def as_matlab(path: Path, kspace: np.ndarray) -> None:
    savemat(path.with_suffix(".mat"), {"kspace": kspace.transpose(2, 3, 1, 0)})
    path.with_suffix(".json").write_text(json.dumps({"axes": ["ky", "kz", "coil", "slice"]}))


def as_numpy(path: Path, kspace: np.ndarray) -> None:
    np.save(path.with_suffix(".npy"), kspace)


def as_mrd(path: Path, kspace: np.ndarray) -> None:
    lines = [
        own.acquisition(kspace[s, :, :, y], slice=s, position=(0, 0, 5 * s), kspace_encode_step_1=y)
        for s in range(len(kspace))
        for y in range(PLANE[1])
    ]
    own.write_mrd(path.with_suffix(".h5"), own.xml(*PLANE, 1, oversampling=1), lines)


@pytest.mark.parametrize("write", [as_numpy, as_bart, as_matlab, as_mrd])
def test_every_format_is_trained_on_and_evaluated(write, workplace, capsys):
    for number in range(4):
        Path("mine").mkdir(exist_ok=True)
        write(Path(f"mine/scan{number}"), own.kspace(1, seed=number))
    words = ["--preset", "smoke", "--masks", "4", "--mask", "lines", "--data", "mine", "--epochs", "1"]
    assert run("python -m mri.train", {"": train}, [*words, "--name", "m", "--epoch-steps", "1"]) == 0
    out = capsys.readouterr().out
    assert "data: own data, in mine" in out
    assert "shared out by name, train 2, val 1, test 1" in out
    assert run("python -m mri.eval", {"": evaluate}, []) == 0
    text = (workplace / "runs/mri/results/acceleration.md").read_text()
    assert "own data, 1 test scan" in text
    assert "msense" in text


ONE_STEP = ["--preset", "smoke", "--model", "mcs", "--epochs", "1", "--epoch-steps", "1", "--name", "m"]


@pytest.mark.parametrize(
    "supervision", [["zero-shot", "--scan", "scan1"], ["self"]], ids=lambda words: words[0]
)
def test_scans_that_were_acquired_undersampled_are_trained_on_and_reconstructed(
    supervision, workplace, monkeypatch, capsys
):
    monkeypatch.setenv("MONARCH_DATA", "cache")
    Path("mine").mkdir()
    for number in range(3):
        np.save(f"mine/scan{number}.npy", own.kspace(2, seed=number) * own.lines())
    words = [*ONE_STEP, "--data", "mine", "--supervision", *supervision]
    assert run("python -m mri.train", {"": train}, [*words, "--data", "mine/scan1.npy"]) == 2
    assert (
        "is a file; name its folder, mine, or give the file to python -m mri.reconstruct"
        in capsys.readouterr().err
    )
    assert run("python -m mri.train", {"": train}, words) == 0
    assert Path("cache/statistics").exists()
    out = capsys.readouterr().out
    assert "acceleration 1.67, training scans" in out
    assert "taken as they are, whatever --acc says" in out
    weights = Path("runs/mri/m/weights.safetensors")
    assert load(weights).header["acc"] == 1.67
    data = json.loads(Path("runs/mri/m/manifest.json").read_text())["data"]
    assert set(data["undersampled"].values()) == {1.67}
    assert not Path("cache/masks").exists()  # none were simulated
    words = ["--weights", str(weights), "--input", "mine/scan1.npy", "--out", "out.npy", "--part", "complex"]
    assert reconstruct_with(*words) == 0
    assert error(np.load("out.npy")[..., 0]) < 0.02  # half of what zero-filled SENSE leaves
    capsys.readouterr()
    assert run("python -m mri.eval", {"": evaluate}, []) == 2
    heard = capsys.readouterr()
    assert "mine has no fully sampled" in heard.out
    assert f"python -m mri.reconstruct --weights {weights}" in heard.out
    assert "no run is left to score; name fully sampled scans with --data" in heard.err


def test_what_undersampled_scans_taught_is_scored_on_full_ones_at_their_acceleration(workplace, capsys):
    """Whether these are in the same folder or in another."""
    for number, split in enumerate(("train", "val", "test")):
        for root, sampled in (("mine", own.lines() | (split == "test")), ("full", True)):
            Path(root, split).mkdir(parents=True)
            np.save(f"{root}/{split}/scan{number}.npy", own.kspace(2, seed=number) * sampled)
    zero_shot = ["--supervision", "zero-shot", "--scan", "scan0", "--name", "z"]
    for words in (["--supervision", "self"], zero_shot):
        assert run("python -m mri.train", {"": train}, [*ONE_STEP, "--data", "mine", *words]) == 0
    for words in ([], ["--data", "full"]):
        capsys.readouterr()
        assert run("python -m mri.eval", {"": evaluate}, ["--figures", "false", *words]) == 0
        assert "z learned from scans that were acquired undersampled" in capsys.readouterr().out
        with Path("runs/mri/results/acceleration.csv").open() as file:
            rows = [(row["acc"], row["method"]) for row in csv.DictReader(file)]
        assert rows == [("1.67", "sense"), ("1.67", "mcs")]
    assert run("python -m mri.eval", {"": evaluate}, ["--data", "nowhere"]) == 2
    assert "--data names nowhere, but there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize("validated", [True, False])
def test_an_undersampled_scan_teaches_what_a_full_one_does_under_the_same_mask(validated, workplace):
    """Whatever else the full one holds, and whether or not validation sees it too."""
    sampled, found = torch.from_numpy(own.lines()), []
    density = density_of_one(sampled)
    for folder, kspace in (("full", FULL), ("under", FULL * own.lines())):
        Path(folder).mkdir()
        np.save(f"{folder}/scan.npy", kspace)
        np.save(f"{folder}/scan_maps.npy", np.stack([own.maps()] * len(FULL)))
        scan = open_scan(f"{folder}/scan.npy")
        assert scan.undersampled == (folder == "under")
        masks, densities = ({}, {}) if scan.undersampled else ({"scan": sampled}, {"scan": density})
        config = TrainConfig(model="mcs", supervision="self", options={"iterations": 2})
        trained = SelfSupervised(
            build("mcs", PLANE, **config.options),
            config,
            masks,
            reserve(masks, densities) if validated else {},
            densities,
            ["scan"] if scan.undersampled and validated else [],
        )
        slices = SliceDataset([scan])
        batch = collate([slices[0], slices[1]])
        torch.manual_seed(1)
        found.append((trained.loss(batch), *trained.scores(batch)["error"]))
        assert trained._of(batch)[1].any() == validated
    assert found[0] == found[1]


@pytest.mark.parametrize("joint", [False, True])
def test_slices_and_echoes_that_are_sampled_differently_are_each_taken_as_they_are(
    joint, workplace, monkeypatch
):
    """Nothing that was sampled is left out, and nothing else counts as sampled."""
    sampled = np.random.default_rng(0).random((2, 2, 1, *PLANE)) < 0.3  # (slice, echo, coil, ky, kz)
    sampled[..., 20:28, 16:24] = True
    np.save("scan.npy", FULL[:, None] * sampled)
    np.save("scan_maps.npy", np.stack([own.maps()] * 2))
    config = TrainConfig(model="mcs", supervision="self", options={"iterations": 2, "joint_echoes": joint})
    method = build("mcs", PLANE, **config.options)
    trained = SelfSupervised(method, config, {}, {}, {}, ["scan"])
    compared = []

    def watched(image, kspace, maps, weights):
        compared.append(torch.equal(weights > 0, (kspace != 0).any(1)))
        return misfit(image, kspace, maps, weights)

    slices = SliceDataset([open_scan("scan.npy")])
    batch = collate([slices[index] for index in range(4)])
    masks, reserved, density = trained._of(batch)
    assert torch.equal(masks, torch.from_numpy(sampled[:, :, 0].reshape(4, *PLANE)))
    assert (density[masks] > 0.1).all()
    assert not (reserved & ~masks).any()
    monkeypatch.setattr("mri.supervision.misfit", watched)
    trained.validated.clear()  # then there is nothing that is not trained on
    for _ in range(6):  # some of them coarser
        trained.loss(batch)
    trained.scores(batch)
    assert compared == [True] * 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "mine"], "of 1 listed only 0 can be used. scan2: .* no target to learn from or to score"),
        (
            ["--data", "half", "--models", "mcs,cg-sense"],
            "--models cg-sense need fully sampled .* leave them out. half/scan0.npy is undersampled",
        ),
        (
            ["--data", "half", "--supervision", "zero-shot", "--scan", "scan0"],
            "test scans in half are scan2; ",
        ),
    ],
    ids=["nothing to score", "nothing to tune on", "another scan"],
)
def test_a_table_that_cannot_be_made_is_refused_before_training(words, message, workplace, capsys):
    for number in range(3):
        for root in ("mine", "half"):
            Path(root).mkdir(exist_ok=True)
            np.save(f"{root}/scan{number}.npy", FULL * (own.lines() | (root == "half" and number == 2)))
    usual = ["--preset", "smoke", "--models", "mcs", "--supervision", "self", "--few-shot", "[1]"]
    assert run("python -m mri.table", {"": table}, [*usual, *words]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not Path("runs").exists()


def test_scans_of_one_name_that_differ_in_size_are_refused(workplace, capsys):
    for split, plane in (("train", (32, 24)), ("val", (24, 16))):
        Path("mine", split).mkdir(parents=True)
        np.save(f"mine/{split}/scan.npy", own.kspace(1, plane))
    words = ["--data", "mine", "--preset", "smoke", "--model", "msense", "--name", "m"]
    assert run("python -m mri.train", {"": train}, words) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "mine/train/scan.npy and mine/val/scan.npy have one name" in said
    assert not Path("runs/mri/m").exists()


@pytest.mark.parametrize("model", ["unet", "varnet"])
def test_networks_that_were_trained_on_larger_slices_refuse_what_leaves_them_nothing(model):
    method = build(model, (64, 64), **({"channels": 2} | ({"levels": 3} if model == "varnet" else {})))
    small = torch.ones(1, 2, 12, 7, dtype=torch.complex64)
    mask = torch.ones(1, 12, 7, dtype=torch.bool)
    with pytest.raises(UserError, match=r"levels needs slices of at least .* not 12 x 7"):
        method(small, small, mask, torch.zeros(1, dtype=torch.long))


def test_msense_says_what_to_do_about_a_prime_side():
    with pytest.raises(UserError, match=r"17 x 12, since .* sides that are no primes, or use --model mcs"):
        build("msense", (17, 12))


def test_a_slice_does_not_depend_on_those_that_are_reconstructed_with_it(workplace):
    sampled = np.stack([own.lines(), own.lines(), own.lines()])
    sampled[0, :, :6] = sampled[0, :, 34:] = False  # another acquired grid
    np.save("scan.npy", own.kspace(3) * sampled[:, None])
    np.save("scan_maps.npy", np.stack([own.maps()] * 3))
    scan, predictor = open_scan("scan.npy"), Predictor(build("mcs", PLANE, iterations=2))
    whole = predictor.reconstruct(scan, None)
    for index in range(3):
        np.testing.assert_allclose(
            predictor.reconstruct(scan, None, [index])[0, 0], whole[0, index], atol=1e-5
        )


def test_with_ground_truth_an_undersampled_scan_is_refused(workplace, capsys):
    Path("mine").mkdir()
    for number in range(3):
        np.save(f"mine/scan{number}.npy", FULL * own.lines())
    assert run("python -m mri.train", {"": train}, [*ONE_STEP, "--data", "mine"]) == 2
    assert "so does mri.train with --supervision self or zero-shot" in capsys.readouterr().err


def test_an_impossible_acceleration_leaves_no_run(knees, workplace, capsys):
    words = ["--preset", "smoke", "--data", str(knees), "--acc", "60"]
    assert run("python -m mri.train", {"": train}, words) == 2
    assert "acceleration 60 is more than" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_the_page_runs_from_a_raw_file_to_a_figure(root, workplace, capsys):
    """Every command and every piece of Python of docs/own-data-mri.md, in its order."""
    page = (root / "docs/own-data-mri.md").read_text()
    commands = {
        "data.scans": {"info": info, "show": show},
        "mri.reconstruct": {"": reconstruct},
        "mri.train": {"": train},
        "mri.eval": {"": evaluate},
    }
    done = 0
    for kind, block in re.findall(r"```(python|sh)\n(.*?)```", page, flags=re.DOTALL):
        if kind == "python":
            exec(block, {})
            continue
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                assert words[:2] == ["python", "-m"]
                status = run(" ".join(words[:3]), commands[words[2]], words[3:])
                assert status == 0, line + capsys.readouterr().err
                done += 1
    assert done >= 6
    assert Path("knee_scan.png").stat().st_size > 10_000
    assert Path("runs/mri/results/reconstruction_echo1.png").stat().st_size > 10_000


def test_a_series_needs_real_numbers_and_a_name_without_ending(workplace):
    np.save("full.npy", FULL)
    with pytest.raises(UserError, match="no complex numbers"):
        write_volume(Path("folder"), FULL[:, :1].transpose(0, 2, 3, 1), open_scan("full.npy"), "complex")
    assert ReconstructConfig().part is None
