"""The commands as people type them, and what they answer to mistakes."""

import csv
import re
from pathlib import Path

import nibabel
import numpy as np
import pytest

from data.scans.reader import load_scans
from lab import weights
from lab.cli import parse, run
from lab.runs import FinishedRun
from mri import eval as mri_eval
from mri.config import EvalConfig, TableConfig, TrainConfig
from mri.eval import evaluate
from mri.experiment import header
from mri.models.__main__ import show as models
from mri.models.msense import MSense
from mri.reconstruct import reconstruct
from mri.table import planned, table
from mri.train import train

SMALL = ["--preset", "smoke", "--masks", "4", "--mask", "random"]


def train_small(knees: Path, *words: str) -> int:
    return run("python -m mri.train", {"": train}, [*SMALL, "--data", str(knees), *words])


def test_table_trains_evaluates_and_skips_what_is_finished(knees, workplace, capsys):
    words = [*SMALL, "--data", str(knees), "--accs", "[2,3]", "--few-shot", "[1,2]", "--epochs", "1"]
    words += ["--models", "sense,msense,unet,dc-sense"]
    assert run("python -m mri.table", {"": table}, words) == 0
    results = workplace / "runs/mri/table-smoke-results"
    for name in ("acceleration", "few_shot", "against_sense", "against_dc_sense"):
        assert {path.suffix for path in results.glob(f"{name}.*")} == {".md", ".csv", ".tex"}
    assert "synthetic knee, 2 test scans" in (results / "acceleration.md").read_text()
    with (results / "few_shot.csv").open() as file:
        methods = [(row["n"], row["method"]) for row in csv.DictReader(file)]
    assert methods[:3] == [("none", "sense"), ("1", "msense"), ("1", "unet")]
    with (results / "per_scan.csv").open() as file:
        scans = {(row["scan"], row["echo"]) for row in csv.DictReader(file)}
    assert len(scans) == 4
    for picture in ("reconstruction_echo1.png", "reconstruction_echo2.png", "learned_msense.png"):
        assert (results / picture).stat().st_size > 10_000
    capsys.readouterr()
    assert run("python -m mri.table", {"": table}, words) == 0
    again = capsys.readouterr().out
    assert again.count("finished before") == 4 + 2 * 2
    assert "scoring" not in again


def test_reconstruct_writes_millimetres_and_every_echo(knees, workplace, capsys):
    assert train_small(knees, "--name", "m", "--n-train", "1", "--epochs", "1") == 0
    scan = load_scans(knees, "test").scans[0]
    words = [
        "--weights",
        "runs/mri/m/weights.safetensors",
        "--input",
        str(scan.path),
        "--out",
        "out.nii.gz",
    ]
    assert run("python -m mri.reconstruct", {"": reconstruct}, words) == 0
    image = nibabel.load("out.nii.gz")
    assert image.shape == (*scan.matrix_shape, 2)
    assert np.allclose(image.header.get_zooms()[:3], scan.voxel_spacing)
    assert nibabel.aff2axcodes(image.affine) == ("I", "P", "R")
    target = np.abs(scan.read(6, 0)[2].numpy())
    found = image.get_fdata()[6, :, :, 0]
    assert np.corrcoef(target.ravel(), found.ravel())[0, 1] > 0.95
    assert "echo 2, against full sampling: pSNR" in capsys.readouterr().out


def test_eval_exports_volumes(knees, workplace):
    assert train_small(knees, "--model", "dc-sense", "--name", "d") == 0
    assert run("python -m mri.eval", {"": evaluate}, ["--export", "nifti", "--figures", "false"]) == 0
    names = {path.name for path in (workplace / "runs/mri/results/volumes").iterdir()}
    first = load_scans(knees, "test").scans[0].scan_id
    assert {
        f"{first}-target.nii.gz",
        f"{first}-sense-acc2.nii.gz",
        f"{first}-dc-sense-acc2-n3.nii.gz",
    } <= names


def test_runs_with_different_masks_have_tables_of_their_own(knees, workplace, capsys):
    for name, kind in (("a", "random"), ("b", "lines")):
        assert train_small(knees, "--model", "dc-sense", "--name", name, "--mask", kind) == 0
    assert run("python -m mri.eval", {"": evaluate}, ["--figures", "false"]) == 0
    folders = {path.parent.name for path in (workplace / "runs/mri/results").glob("*/acceleration.md")}
    assert folders == {f"{knees.name}-random", f"{knees.name}-lines"}


def scored() -> list[tuple[str, ...]]:
    with Path("runs/mri/results/per_scan.csv").open() as file:
        return [
            tuple(row[key] for key in ("acc", "method", "num_train", "scan", "echo"))
            for row in csv.DictReader(file)
        ]


def test_all_scans_and_as_many_as_there_are_make_one_row(knees, workplace, capsys):
    assert train_small(knees, "--model", "dc-sense", "--name", "a") == 0
    for name, seed in (("b", "1"), ("c", "0")):
        words = ["--model", "dc-sense", "--n-train", "3", "--name", name, "--seed", seed]
        assert train_small(knees, *words) == 0
    assert run("python -m mri.eval", {"": evaluate}, ["--figures", "false"]) == 0
    assert "a and c stand in one row with the same seed; the second counts" in capsys.readouterr().out
    found = scored()
    assert len(found) == len(set(found)) == 8  # SENSE and DC-SENSE, two scans, two echoes
    assert Path("runs/mri/results/seeds.md").is_file()


def test_at_other_accelerations_rows_say_what_they_were_trained_on(knees, workplace):
    for acc in ("2", "3"):
        assert train_small(knees, "--model", "dc-sense", "--name", f"d{acc}", "--acc", acc) == 0
    assert run("python -m mri.eval", {"": evaluate}, ["--figures", "false", "--accs", "2,3"]) == 0
    found = scored()
    assert len(found) == len(set(found))
    assert {(acc, method) for acc, method, *_ in found} == {
        (acc, method) for acc in "23" for method in ("sense", "dc-sense", "dc-sense, acc 3")
    }


def test_models_are_listed_with_the_papers_parameters(capsys):
    assert run("python -m mri.models", {"": models}, []) == 0
    out = capsys.readouterr().out
    assert "57,472" in out
    assert "7,756,418" in out
    assert run("python -m mri.models", {"": models}, ["--plane", "[17,13]"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "mSENSE cannot be built for slices of 17 x 13" in out
    assert "l1-wavelet" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "mesnse"], "did you mean msense?"),
        (["--data", "nowhere"], "--data names nowhere, but there is no such folder."),
        (["--n-train", "99"], "99 scans are wanted"),
        (["--form", "grid", "--rank", "2"], "--rank is a number of separable pairs"),
        (["--model", "mcs", "--patch", "7"], "--patch must be even, not 7"),
        (["--mixed-acc", "2,0.5"], "needs an acceleration of at least 1.5, not 0.5"),
        (
            ["--model", "unet", "--steps", "3"],
            "--steps does nothing with --model unet; it belongs to msense.",
        ),
        (["--model", "sense", "--decay-towards", "zero"], "--decay-towards does nothing with --model sense"),
        (["--acc", "1"], "needs an acceleration of at least 1.5"),
        (["--shift", "0.7"], "--shift is a share of the field of view"),
    ],
)
def test_mistakes_in_training_get_a_sentence(knees, workplace, capsys, words, sentence):
    assert train_small(knees, *words) == 2
    assert sentence in capsys.readouterr().err


def test_eval_without_runs_says_how_to_train(workplace, capsys):
    assert run("python -m mri.eval", {"": evaluate}, []) == 2
    assert "train one first with: python -m mri.train" in capsys.readouterr().err


def test_eval_refuses_an_unknown_method_to_compare_with(workplace, capsys):
    assert run("python -m mri.eval", {"": evaluate}, ["--against", "mesnse"]) == 2
    assert "did you mean msense?" in capsys.readouterr().err


def test_data_sets_of_one_name_have_tables_of_their_own(workplace, monkeypatch):
    """Two folders called knees; one of them is named in two ways."""
    runs = []
    for number, root in enumerate(("a/knees", "b/knees", "b/../a/knees")):
        Path(root.replace("b/../", "")).mkdir(parents=True, exist_ok=True)
        runs.append(FinishedRun(Path(f"run{number}"), {"mask": "random"}, {"data": {"root": root}}))
    places = {}
    monkeypatch.setattr(
        mri_eval, "_report_one", lambda members, root, place, _: places.update({place: members})
    )
    mri_eval.report(runs, Path("results"), EvalConfig(threads=1))
    assert sorted(len(members) for members in places.values()) == [1, 2]
    assert all(re.fullmatch(r"knees-[0-9a-f]{6}-random", place.name) for place in places)


def test_scans_of_another_kind_of_data_were_not_met(knees, capsys):
    scans = load_scans(knees, "test").scans
    data = {"name": "synthetic knee", "train": [scans[0].scan_id], "validation": []}
    both = [FinishedRun(Path(name), {}, {"data": data | {"name": kind}})
            for name, kind in (("mine", "synthetic knee"), ("theirs", "SKM-TEA"))]  # fmt: skip
    mri_eval._warn_of_overlap(both, scans)
    said = capsys.readouterr().out
    assert "mine has met scans" in said
    assert "theirs" not in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--cross", "a,b", "--export", "nifti"],
            "--cross writes one table and nothing else; leave out --export",
        ),
        (["--cross", "a,b", "--t2"], "leave out --t2"),
        (["--tr", "25"], "--tr is for maps of T2; add --t2, or leave it out"),
    ],
)
def test_options_of_eval_that_would_do_nothing_are_refused(words, sentence, workplace, capsys):
    assert run("python -m mri.eval", {"": evaluate}, words) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_weights_of_another_size_are_refused_where_they_cannot_be_resampled(knees, workplace, capsys):
    config = TrainConfig(options={"form": "grid"})
    method = MSense((40, 24), form="grid")
    weights.save(Path("w.safetensors"), method, header(method, config))
    scan = load_scans(knees, "test").scans[0]
    words = ["--weights", "w.safetensors", "--input", str(scan.path), "--out", "x.nii"]
    assert run("python -m mri.reconstruct", {"": reconstruct}, words) == 2
    assert "these weights are for slices of 40 x 24" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "either --weights of a finished run or --model names the method"),
        (
            ["--weights", "a.safetensors", "--input", "b.h5"],
            "--weights names a.safetensors, but there is no such file",
        ),
        (["--weights", "a", "--input", "b", "--out", "c.png"], "ends in .nii or .nii.gz, .cfl or .npy"),
        (["--model", "sense", "--input", "b", "--mask", "lines"], "--mask goes with --model and --acc"),
        (["--model", "sense", "--input", "b", "--flip", "20"], "--flip is for maps of T2; add --t2"),
    ],
)
def test_mistakes_in_reconstruct_get_a_sentence(workplace, capsys, words, sentence):
    assert run("python -m mri.reconstruct", {"": reconstruct}, words) == 2
    assert sentence in capsys.readouterr().err


def test_without_data_the_first_lines_say_synthetic(knees, workplace, capsys):
    words = [
        *SMALL,
        "--model",
        "dc-sense",
    ]  # the knees that the fixture made are the built-in ones of this size
    assert run("python -m mri.train", {"": train}, words) == 0
    assert "SYNTHETIC KNEES" in "".join(capsys.readouterr().out.splitlines()[:2])


def test_table_has_the_unet_in_the_few_shot_part_only():
    names = [each.name for each in planned(TableConfig(prefix="t"))]
    assert sum("unet" in name for name in names) == 4
    assert "t-msense-acc8-nall-seed0" in names
    few, mixed, each = (
        4 * 5,
        3,
        5 * 4,
    )  # msense, unet, mcs, varnet, modl; the mixed; msense and three without training
    assert len(names) == len(set(names)) == few + mixed + each


def test_table_scores_scans_of_the_size_that_it_trains_on(workplace, monkeypatch):
    scored = []
    monkeypatch.setattr("lab.runs.train_missing", lambda *_: [])
    monkeypatch.setattr(mri_eval, "report", lambda _, __, config: scored.append(config.plane))
    table(TableConfig(preset="smoke", models=["dc-sense"], plane=(32, 24)))
    assert scored == [(32, 24)]


def test_table_trains_methods_that_serve_all_accelerations_once():
    plans = {each.name: each for each in planned(TableConfig(prefix="t", accs=[2.0, 4.0, 8.0], few_shot=[]))}
    mixed = plans["t-varnet-mixed-nall-seed0"]
    assert (mixed.acc, mixed.mixed_acc) == (4.0, [2.0, 4.0, 8.0])
    assert plans["t-msense-acc8-nall-seed0"].mixed_acc is None
    assert sum("varnet" in name for name in plans) == 1
    alone = [each.name for each in planned(TableConfig(prefix="t", accs=[2.0], few_shot=[], models=["mcs"]))]
    assert alone == ["t-mcs-acc2-nall-seed0"]


def test_a_run_for_several_accelerations_is_scored_at_each(knees, workplace):
    words = ["--model", "varnet", "--cascades", "1", "--channels", "2", "--epochs", "1", "--name", "v"]
    assert train_small(knees, *words, "--num-train", "1", "--acc", "3", "--mixed-acc", "2,4") == 0
    assert train_small(knees, "--model", "dc-sense", "--name", "d", "--acc", "4") == 0
    assert run("python -m mri.eval", {"": evaluate}, ["--figures", "false"]) == 0
    with (workplace / "runs/mri/results/acceleration.csv").open() as file:
        rows = [(row["acc"], row["method"]) for row in csv.DictReader(file)]
    both = [(acc, method) for acc in "234" for method in ("sense", "varnet")]
    assert rows == [*both, ("4", "dc-sense")]


def test_table_gives_an_option_to_every_method_that_has_it():
    config = parse(TableConfig, ["--preset", "smoke", "--steps", "3", "--seeds", "2"], prog="x")
    plans = list(planned(config))
    assert {each.options["steps"] for each in plans if each.model == "msense"} == {3}
    assert {each.options["channels"] for each in plans if each.model == "unet"} == {4}
    assert {each.seed for each in plans} == {0, 1}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "unet"], "a table takes --models, not --model."),
        (["--models", "dc-sense,cg-sense", "--steps", "2"], "--steps does nothing for --models"),
        (["--models", "sense"], "there is nothing to train"),
        (["--models", "mesnse"], "did you mean msense?"),
        (["--mixed", "mesnse"], "did you mean msense?"),
    ],
)
def test_mistakes_in_a_table_get_a_sentence(workplace, capsys, words, sentence):
    assert run("python -m mri.table", {"": table}, [*SMALL, *words]) == 2
    assert sentence in capsys.readouterr().err
