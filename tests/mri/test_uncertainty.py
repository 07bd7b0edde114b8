"""Uncertainty from parts of the samples, its calibration and coverage."""

from pathlib import Path

import numpy as np
import pytest
import torch

from data.scans.reader import open_scan
from lab.errors import UserError
from lab.runs import FinishedRun
from mri import coverage, cross
from mri.config import EvalConfig, ReconstructConfig, TrainConfig
from mri.coverage import _validation_scans, coverage_table
from mri.eval import evaluate
from mri.models.sense import Sense
from mri.predictor import Predictor
from mri.reconstruct import reconstruct
from mri.sampling import evaluation_masks
from mri.scores import Result
from mri.sources import Source
from mri.train import train
from mri.uncertainty import LEVEL, PARTS, half_width, keep, kept_factor, parts, ratios, spread
from tests.data import own_files as own


@pytest.fixture(scope="module")
def trained(knees, tmp_path_factory):
    """A short run of mcs on two accelerations, and everything that mri.eval makes of it."""
    place = tmp_path_factory.mktemp("uncertain")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MONARCH_RUNS", str(place / "runs"))
        options = {"iterations": 2, "transform": "fixed"}
        train(
            TrainConfig(model="mcs", options=options, data=knees, num_train=1, epochs=1, masks=4, mask="random",
                        lr=1e-3, mixed_acc=[2.0, 4.0], val_slices=2, slices=4, batch_size=4, threads=1, name="m")
        )  # fmt: skip
        evaluate(EvalConfig(out=place / "results", figures=False, uncertainty=True, threads=1))
        evaluate(EvalConfig(out=place / "results", cross=[knees], accs=[3.0], threads=1))
        yield place


def test_each_sample_is_left_out_once_and_the_centre_never():
    mask = torch.rand(24, 20) < 0.5
    times_left_out = sum((mask & ~one).int() for one in parts(mask, 0))
    expected = mask.int()
    expected[10:14, 8:12] = 0
    assert torch.equal(times_left_out, expected)


def test_spread_of_a_linear_reconstruction_is_its_jackknife(knees):
    scan = Source(knees).scans("val")[0]
    mask = evaluation_masks([scan], 2.0, "random")[scan.scan_id]
    predictor = Predictor(Sense((32, 24)))
    found = spread(predictor, scan, mask, [5])[0]
    assert found.shape == (1, 32, 24)
    from data.masks.pool import stable_seed

    seed = stable_seed(scan.scan_id, "parts")
    images = np.stack([np.abs(predictor.reconstruct(scan, one, [5])[0, 0]) for one in parts(mask, seed)])
    variance = (PARTS - 1) / PARTS * ((images - images.mean(0)) ** 2).sum(0)
    middle = variance[14:19, 10:15].mean() ** 0.5  # the window of 5 x 5 around (16, 12)
    assert found[0, 16, 12] == pytest.approx(middle, rel=1e-3)


def test_slices_that_were_sampled_differently_each_lose_parts_of_their_own_samples(workplace):
    """Whatever the middle slice has: that of a scan is another when its slices are stacked the other way round."""
    sampled = np.random.default_rng(0).random((2, 1, *own.PLANE)) < 0.3
    sampled[..., 20:28, 16:24] = True
    keep(Path(), 2.0, 1.0, [])
    found = []
    for folder, order in (("one", [0, 1]), ("other", [1, 0])):
        Path(folder).mkdir()
        np.save(f"{folder}/scan.npy", (own.kspace(2) * sampled)[order])
        np.save(f"{folder}/scan_maps.npy", np.stack([own.maps()] * 2))
        scan = open_scan(f"{folder}/scan.npy")
        found.append(half_width(Predictor(Sense(own.PLANE)), scan, None, Path())[0][order])
    assert np.allclose(*found, rtol=1e-3)


def test_ratios_count_the_anatomy_alone():
    image = np.full((1, 8, 8), 1 + 0j, np.complex64)
    image[:, :, 4:] = 0.01
    found = ratios(image, image * 1.5, np.full((1, 8, 8), 0.25, np.float32))
    assert found.shape == (32,)
    assert np.allclose(found, 2)


def test_coverage_is_reported_at_every_acceleration_and_the_factor_is_kept(trained):
    lines = (trained / "results/uncertainty.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["2", "4"]
    shares = [float(line.split(",")[4]) for line in lines[1:]]
    assert all(LEVEL - 0.15 < share < 1 for share in shares)
    folder = trained / "runs/mri/m"
    assert kept_factor(folder, 2.1)[1] == 2
    assert kept_factor(folder, 30.0)[1] == 4


def test_runs_on_several_accelerations_are_scored_at_each(trained):
    rows = [line.split(",") for line in (trained / "results/acceleration.csv").read_text().splitlines()]
    assert [(row[0], row[1]) for row in rows[1:]] == [
        ("2", "sense"),
        ("2", "mcs"),
        ("4", "sense"),
        ("4", "mcs"),
    ]


def test_cross_table_scores_a_run_on_another_data_set_at_the_accelerations_asked_for(trained):
    rows = [line.split(",") for line in (trained / "results/cross.csv").read_text().splitlines()]
    assert [row[:3] for row in rows[1:]] == [["3", "nothing", "sense"], ["3", "synthetic knee", "mcs"]]
    assert float(rows[2][4]) > float(rows[1][4])


def test_reconstruct_writes_half_widths_beside_the_volume(trained, knees):
    nibabel = pytest.importorskip("nibabel")
    scan = Source(knees).scans("test")[0]
    weights = trained / "runs/mri/m/weights.safetensors"
    reconstruct(
        ReconstructConfig(
            weights=weights,
            input=scan.path,
            out=trained / "x.nii.gz",
            acc=2.0,
            uncertainty=True,
            threads=1,
        )
    )
    widths = nibabel.load(trained / "x-uncertainty.nii.gz").get_fdata()
    image = nibabel.load(trained / "x.nii.gz").get_fdata()
    truth = np.stack(
        [[abs(open_scan(scan.path).read(i, echo)[2].numpy()) for echo in range(2)] for i in range(12)]
    ).transpose(0, 2, 3, 1)
    inside = image > 0.05 * image.max()
    assert widths.shape == image.shape
    assert 0.7 < (np.abs(image - truth) < widths)[inside].mean() < 1


def test_weights_without_calibration_are_refused_with_the_command_that_calibrates(tmp_path):
    with pytest.raises(UserError, match=r"mri.eval --only .* --uncertainty"):
        kept_factor(tmp_path, 2.0)


DAMAGED = ("{", "[]", '{"factors": []}', '{"factors": {}}', '{"factors": {"2": {}}}',
           '{"factors": {"2": {"factor": NaN}}}', '{"factors": {"x": {"factor": 1}}}')  # fmt: skip


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_calibration_is_a_sentence(tmp_path, content):
    (tmp_path / "uncertainty.json").write_text(content)
    with pytest.raises(UserError, match=r"uncertainty\.json"):
        kept_factor(tmp_path, 2.0)
    with pytest.raises(UserError, match=r"uncertainty\.json"):
        keep(tmp_path, 2.0, 1.0, ["MTR_001"])


def test_data_that_have_moved_are_found_where_the_scored_scans_are(knees, tmp_path):
    named = [scan.scan_id for scan in Source(knees).scans("val")]
    run = FinishedRun(tmp_path / "m", {}, {"data": {"root": str(tmp_path / "gone"), "validation": named}})
    assert [scan.scan_id for scan in _validation_scans(run, knees)] == named
    run.manifest["data"]["validation"].append("MTR_999")
    with pytest.raises(UserError, match=r"calibrates on the data of m, which were in .*gone"):
        _validation_scans(run, knees)


def test_scans_may_have_different_numbers_of_echoes(tmp_path, monkeypatch):
    paths = []
    for name, echoes in (("one", 1), ("two", 2)):
        np.save(tmp_path / f"{name}.npy", np.stack([own.kspace(1, (16, 12))] * echoes, axis=1))
        paths.append(tmp_path / f"{name}.npy")
    scans = [open_scan(path) for path in paths]
    ratio = np.full(10, 1.0)
    monkeypatch.setattr(
        coverage, "_measured", lambda _, scan, *__: ([ratio] * scan.num_echoes, [0.5] * scan.num_echoes)
    )
    monkeypatch.setattr(coverage, "_validation_scans", lambda *_: scans)
    monkeypatch.setattr(Result, "predictor", lambda *_: None)
    run = FinishedRun(tmp_path / "m", {}, {"data": {}})
    (row,) = coverage_table(
        [Result("mcs", "mcs", 2.0, 1, {}, (run,))], scans, "random", "data", tmp_path
    ).rows
    assert [row[f"width_{echo}"].count for echo in (1, 2)] == [2, 1]


def test_data_sets_of_one_kind_have_columns_that_tell_them_apart(tmp_path, monkeypatch):
    np.save(tmp_path / "scan.npy", own.kspace(1, (16, 12)))
    scan = open_scan(tmp_path / "scan.npy")
    monkeypatch.setattr(cross, "tested", lambda *_: {Path("a/left"): [scan], Path("a/right"): [scan]})
    monkeypatch.setattr(cross, "score_runs", lambda *_: [])
    run = FinishedRun(tmp_path / "m", {"mask": "random"}, {"data": {"name": "own data"}})
    table = cross.cross_table([run], [], EvalConfig(), tmp_path)
    assert [column.title for column in table.columns[4:]] == ["own data (left)", "own data (right)"]
