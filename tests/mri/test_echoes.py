"""Echoes that are reconstructed together: how they are read, trained on, resumed and put to use."""

import csv
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from data.knee.from_images import from_images
from data.scans.sense import sample
from data.scans.slices import EchoesTogether, SliceDataset, collate
from lab.cli import run
from lab.loader import groups_of
from mri.config import EvalConfig, TrainConfig
from mri.eval import evaluate
from mri.experiment import drawn
from mri.models import build
from mri.predictor import load
from mri.sampling import evaluation_masks, training_masks
from mri.sources import Source, samples
from mri.train import supervised, train

JOINT = {
    "preset": "smoke",
    "model": "mcs",
    "options": {"joint_echoes": True, "iterations": 2},
    "num_train": 1,
    "epochs": 3,
    "batch_size": 3,
    "masks": 4,
    "val_slices": 5,
    "mask": "random",
    "shift": 0.1,
    "threads": 1,
}


@pytest.fixture
def config(knees: Path) -> TrainConfig:
    return TrainConfig(data=knees, **JOINT)


def test_a_sample_is_a_slice_with_all_its_echoes(knees, config):
    source = Source(knees)
    found = samples(config, source)
    assert isinstance(found.train, EchoesTogether)
    assert len(found.train) == 12
    for number, place in enumerate(found.train[index] for index in range(12)):
        assert [one.echo for one in place] == [0, 1]
        assert {(one.slice_index, one.position) for one in place} == {(number, number)}
    assert len(found.validation) == config.val_slices
    alone = samples(replace(config, options={"joint_echoes": False}), source)
    assert len(alone.train) == 24


def test_the_echoes_of_a_slice_share_a_mask_and_a_batch_holds_them_one_after_the_other(knees, config):
    places = samples(config, Source(knees)).train
    batch = collate([places[7], places[2]])
    assert batch.echo.tolist() == [0, 1, 0, 1]
    assert batch.slice_index.tolist() == [7, 7, 2, 2]
    masks = drawn({batch.scan_id[0]: torch.rand(50, 32, 24) < 0.5}, batch, seed=0, epoch=0)
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(masks[2], masks[3])
    assert not torch.equal(masks[0], masks[2])


def test_slices_with_other_sizes_or_numbers_of_echoes_share_no_batch(mixed_knees):
    slices = SliceDataset(Source(mixed_knees).scans("train"))
    last = len(slices) - 1
    together = EchoesTogether(slices, [[0, 1], [2], [last - 1, last]])
    assert len(set(groups_of(together))) == 3


def test_a_resumed_training_ends_as_one_that_was_not_stopped(knees, workplace, stopped, config):
    train(replace(config, name="whole"))
    with stopped():
        train(replace(config, name="parts"))
    train(replace(config, name="parts", resume=True))
    whole, parts = (load(f"runs/mri/{name}/weights.safetensors").method for name in ("whole", "parts"))
    assert whole.joins_echoes
    start = TrainConfig.registry["mcs"].load()(whole.plane, joint_echoes=True, iterations=2).state_dict()
    for key, tensor in whole.state_dict().items():
        assert torch.equal(tensor, parts.state_dict()[key])
        assert not torch.equal(tensor, start[key])


def test_volumes_are_those_of_all_echoes_at_once(knees, workplace, config):
    train(replace(config, name="joint", epochs=1))
    scan = Source(knees).scans("test")[0]
    mask = evaluation_masks([scan], 2.0, "random")[scan.scan_id]
    predictor, made = load("runs/mri/joint/weights.safetensors"), []
    volumes = predictor.reconstruct(scan, mask, [3, 8, 5], made.append)
    assert volumes.shape == (2, 3, 32, 24)
    assert sum(made) == 6
    for place, index in enumerate((3, 8, 5)):
        read = [scan.read(index, echo) for echo in range(2)]
        kspace, maps = (torch.stack([one[part] for one in read]) for part in (0, 1))
        masks = mask.expand(2, -1, -1)
        with torch.inference_mode():
            images = predictor.method(sample(kspace / scan.scale, masks), maps, masks, torch.arange(2))
        expected = (images * scan.scale).numpy()
        assert abs(volumes[:, place] - expected).max() < 1e-5 * abs(expected).max()


@pytest.mark.parametrize("supervision", ["full", "self"])
def test_training_moves_and_splits_the_echoes_of_a_slice_alike(knees, config, supervision, monkeypatch):
    config = replace(config, supervision=supervision, shift=0.4)
    data = samples(config, Source(knees))
    method = build("mcs", (32, 24), **config.options)
    masks = training_masks([*data.train_scans, *data.validation_scans], [2.0], "random", 4)
    experiment = supervised(method, config, masks, data)
    experiment._trainer = SimpleNamespace(current_epoch=0)
    seen = []
    monkeypatch.setattr(method, "forward", lambda *given: seen.append(given) or given[0][:, 0])
    experiment.loss(collate([data.train[7], data.train[3]]))
    ((_, maps, mask, echo),) = seen
    assert echo.tolist() == [0, 1, 0, 1]
    for each in (maps, mask):
        assert torch.equal(each[0::2], each[1::2])
        assert not torch.equal(each[0], each[2])


def test_finished_runs_are_scored_in_a_row_of_their_own(knees, workplace, config):
    for joint in (True, False):
        options = {"joint_echoes": joint, "iterations": 2}
        train(replace(config, name=f"joint-{joint}", epochs=1, options=options))
    evaluate(EvalConfig(figures=False, threads=1))
    with Path("runs/mri/results/acceleration.csv").open() as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"sense", "mcs", "mcs, joint echoes"}


def test_scans_with_one_echo_are_refused(workplace, capsys):
    planes = np.random.default_rng(0).random((9, 40, 32))
    np.savez("slices.npz", x=planes)
    assert (
        run("python -m data.knee", {"from-images": from_images}, ["from-images", "slices.npz", "--out", "d"])
        == 0
    )
    words = ["--preset", "smoke", "--data", "d", "--model", "mcs", "--joint-echoes", "true"]
    assert run("python -m mri.train", {"": train}, words) == 2
    assert "needs scans with several echoes; the training scans have one" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_one_echo_alone_is_refused(knees, workplace, capsys):
    words = ["--preset", "smoke", "--data", str(knees), "--model", "mcs", "--joint-echoes", "true"]
    assert run("python -m mri.train", {"": train}, [*words, "--echo", "2"]) == 2
    assert "learns what echoes have in common; leave out --echo 2" in capsys.readouterr().err
    assert not Path("runs").exists()
