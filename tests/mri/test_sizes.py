"""Data sets whose scans have slices of different sizes: trained on, resumed and scored as one."""

import csv
import math

import pytest
import torch

from data.scans.slices import SliceDataset, collate
from lab.errors import UserError
from lab.files import read_json
from lab.loader import in_order
from mri.config import EvalConfig, TrainConfig
from mri.eval import evaluate
from mri.experiment import Reconstruction
from mri.models import build
from mri.predictor import load
from mri.sampling import evaluation_masks, training_masks
from mri.sources import Source
from mri.train import train

PLANES = {(32, 24), (36, 28)}
SMALL = {"preset": "smoke", "batch_size": 4, "masks": 8, "threads": 1, "mask": "random", "val_slices": 8}
MCS = {"model": "mcs", "options": {"iterations": 2}}


def train_on(root, **options) -> dict[str, float]:
    return train(TrainConfig(data=root, **{**SMALL, "epochs": 2, "lr": 1e-3, **options}))


def test_one_training_serves_scans_of_two_sizes(mixed_knees, workplace):
    for name, options in {"a": MCS, "b": {"model": "msense"}, "c": {"model": "dc-sense"}}.items():
        train_on(mixed_knees, name=name, **options)
    assert len(read_json(workplace / "runs/mri/b/manifest.json")["data"]["planes"]) == 2
    evaluate(EvalConfig(figures=True))
    with (workplace / "runs/mri/results/per_scan.csv").open() as file:
        rows = list(csv.DictReader(file))
    sizes = {scan.scan_id: scan.matrix_shape[1:] for scan in Source(mixed_knees).scans("test")}
    assert set(sizes.values()) == PLANES
    scores = {(row["method"], row["scan"], row["echo"]): float(row["psnr"]) for row in rows}
    assert len(scores) == 4 * 3 * 2
    for (method, scan, echo), score in scores.items():
        assert math.isfinite(score)
        if method != "sense":
            assert score > scores["sense", scan, echo], (method, sizes[scan])


@pytest.mark.parametrize("options", [MCS, {"model": "msense"}])
def test_a_resumed_run_on_two_sizes_ends_with_the_same_weights(mixed_knees, workplace, stopped, options):
    train_on(mixed_knees, name="whole", slices=3, **options)
    with stopped():
        train_on(mixed_knees, name="halves", slices=3, **options)
    train_on(mixed_knees, name="halves", slices=3, resume=True, **options)
    whole, halves = (
        load(f"runs/mri/{name}/weights.safetensors").method.state_dict() for name in ("whole", "halves")
    )
    assert all(torch.equal(whole[name], halves[name]) for name in whole)


@pytest.mark.parametrize("model", ["msense", "mcs"])
def test_slices_of_every_size_teach_the_same_weights(mixed_knees, model):
    scans = Source(mixed_knees).scans("train")
    slices = SliceDataset(scans)
    experiment = Reconstruction(
        build(model, (32, 24)), TrainConfig(model=model), training_masks(scans, [2.0], "random", 8), {}
    )
    batches = {slices.groups[indices[0]]: indices for indices in in_order(slices, 2)}
    assert set(batches) == PLANES
    for indices in batches.values():
        experiment.zero_grad()
        experiment.loss(collate([slices[index] for index in indices])).backward()
        assert all(
            p.grad is not None and p.grad.abs().max() > 0 for p in experiment.parameters() if p.numel() > 20
        )


def test_self_supervision_takes_scans_of_two_sizes(mixed_knees, workplace):
    best = train_on(mixed_knees, name="s", supervision="self", slices=3, **MCS)
    assert math.isfinite(best["error"])


def test_a_method_of_one_size_says_how_to_leave_the_others_out(mixed_knees, workplace, capsys):
    grid = {"model": "msense", "options": {"form": "grid"}}
    with pytest.raises(UserError, match=r"32 x 24, 36 x 28; leave the others out with --plane \[32,24\]"):
        train_on(mixed_knees, name="g", **grid)
    train_on(mixed_knees, name="h", plane=(32, 24), slices=2, **grid)
    assert "left out WMTR_" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"these weights are for slices of 32 x 24, but WMTR"):
        evaluate(EvalConfig(only="h", figures=False))
    evaluate(EvalConfig(only="h", figures=False, plane=(32, 24)))


def test_evaluation_masks_of_two_sizes_are_those_of_each_size_alone(mixed_knees):
    scans = Source(mixed_knees).scans("val")
    together = evaluation_masks(scans, 3.0, "random")
    for scan in scans:
        assert torch.equal(together[scan.scan_id], evaluation_masks([scan], 3.0, "random")[scan.scan_id])
