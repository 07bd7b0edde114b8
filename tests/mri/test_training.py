"""What training does, on small synthetic knees."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from data.scans.reader import open_scan
from data.scans.slices import SliceDataset, collate
from lab.budget import Pace
from lab.files import read_json
from mri.config import RECIPES, TrainConfig
from mri.experiment import Reconstruction, normalised
from mri.models.cg_sense import CgSense
from mri.models.dc_sense import DcSense
from mri.models.mcs import MonarchCS
from mri.models.msense import MSense
from mri.models.sense import Sense
from mri.predictor import load
from mri.sampling import evaluation_masks, training_masks
from mri.search import _examples, _losses, choose
from mri.sources import Source, evenly
from mri.train import plan_of, train
from tests.data import own_files as own

SMALL = {
    "preset": "smoke",
    "num_train": 1,
    "epochs": 12,
    "batch_size": 4,
    "masks": 8,
    "threads": 1,
    "mask": "random",
}


def run_of(knees: Path, **options) -> tuple[TrainConfig, dict[str, float]]:
    config = TrainConfig(data=knees, **{**SMALL, "lr": 3e-3, **options})
    return config, train(config)


def sense_error(knees: Path) -> float:
    """The validation score that SENSE itself would get."""
    scans = Source(knees).scans("val")
    experiment = Reconstruction(Sense((32, 24)), TrainConfig(), {}, evaluation_masks(scans, 2.0, "random"))
    slices = SliceDataset(scans)
    return float(experiment.scores(collate([slices[i] for i in range(len(slices))]))["error"].mean())


def test_msense_learns_to_beat_sense_on_another_knee(knees, workplace):
    _, best = run_of(knees, name="m")
    assert best["error"] < 0.9 * sense_error(knees)


def test_a_strong_pull_keeps_msense_at_its_start(knees, workplace):
    run_of(knees, name="pulled", weight_decay=300.0, epochs=2)
    start = MSense((32, 24)).state_dict()
    trained = load(workplace / "runs/mri/pulled/weights.safetensors").method.state_dict()
    moved = max(float((trained[name] - start[name]).abs().max()) for name in start)
    run_of(knees, name="free", weight_decay=0.0, epochs=2)
    free = load(workplace / "runs/mri/free/weights.safetensors").method.state_dict()
    assert moved < 0.2 * max(float((free[name] - start[name]).abs().max()) for name in start)


def test_mcs_learns_to_beat_sense_on_another_knee_at_two_accelerations(knees, workplace):
    _, best = run_of(knees, name="c", model="mcs", options={"iterations": 4}, mixed_acc=[2.0, 4.0], lr=1e-3)
    assert best["error"] < 0.5 * sense_error(knees)


def test_kinds_of_parameters_learn_and_are_pulled_at_their_own_rates():
    config = TrainConfig(model="mcs", lr=1e-3, weight_decay=0.1)
    method = MonarchCS((32, 24))
    experiment = Reconstruction(method, config, {}, {})
    groups = experiment.parameter_groups()
    rates = {id(parameter): group["lr"] for group in groups for parameter in group["params"]}
    assert len(rates) == len(list(method.parameters()))
    assert rates[id(method.transform.monarch.L)] == pytest.approx(1e-2)
    assert rates[id(method.theta)] == pytest.approx(5e-2)
    assert rates[id(method.eta)] == pytest.approx(2.5e-2)

    optimizer = torch.optim.SGD([group | {"weight_decay": 0.0} for group in groups])
    with torch.no_grad():
        method.theta += 1
        method.eta += 1
    theta, eta = method.theta.detach() - 1, method.eta.detach() - 1
    experiment.optimizer_step(0, 0, optimizer, None)
    assert torch.allclose(method.theta - theta, torch.tensor(1 - 5e-3))
    assert torch.allclose(method.eta - eta, torch.tensor(1 - 2.5e-3))


def test_a_fixed_transform_is_not_trained():
    config = TrainConfig(model="mcs", options={"transform": "fixed"})
    method = MonarchCS((32, 24), transform="fixed")
    groups = Reconstruction(method, config, {}, {}).parameter_groups()
    trained = {id(parameter) for group in groups for parameter in group["params"]}
    assert id(method.transform.monarch.R) not in trained
    assert id(method.theta) in trained


def test_density_start_begins_below_the_error_of_sense(knees, workplace):
    _, best = run_of(knees, name="density", options={"start": "density"}, lr=1e-9, epochs=1)
    assert best["error"] < sense_error(knees)


def test_a_resumed_run_ends_with_the_same_weights(knees, workplace, stopped):
    run_of(knees, name="whole", epochs=3, shift=0.1)
    whole = load(workplace / "runs/mri/whole/weights.safetensors").method.state_dict()
    with stopped():
        run_of(knees, name="halves", epochs=3, shift=0.1)
    run_of(knees, name="halves", epochs=3, shift=0.1, resume=True)
    halves = load(workplace / "runs/mri/halves/weights.safetensors").method.state_dict()
    assert all(torch.equal(whole[name], halves[name]) for name in whole)


@pytest.mark.parametrize("made", [DcSense, CgSense])
def test_each_echo_has_the_best_candidate_on_the_training_scans(knees, monkeypatch, made):
    scans = Source(knees).scans("train", 1)
    masks = training_masks(scans, [2.0], "random", 8)
    monkeypatch.setattr(made, "candidates", made.candidates[::3])
    sampled = masks[scans[0].scan_id].float().mean(0)
    method, single = (made((32, 24), sampled) for _ in range(2))
    found = choose(method, SliceDataset(scans), masks, seed=0)
    examples = _examples(SliceDataset(scans))
    echoes = torch.cat([batch.echo for batch in examples])
    losses = {}
    for candidate in made.candidates:
        single.choose(candidate)
        losses[candidate] = _losses(single, examples, masks, seed=0)
    least = 0.0
    for echo in (0, 1):
        mine = echoes == echo
        best = min(losses, key=lambda candidate, mine=mine: float(losses[candidate][mine].mean()))
        wanted = {f"{name}_{echo + 1}": value for name, value in method.described(best).items()}
        assert wanted.items() <= found.items()
        assert float(method.of_echo("strength", torch.tensor([echo]))) == found[f"strength_{echo + 1}"]
        least += float(losses[best][mine].sum()) / len(mine)
    assert found["loss"] == pytest.approx(least)


def test_an_empty_slice_does_not_choose_the_strength(workplace):
    """Beyond the anatomy ESPIRiT finds no signal: the maps are zero there, and so is the error of every candidate."""
    plane = (32, 24)
    full, maps = own.kspace(3, plane, noise=0.05), np.stack([own.maps(plane)] * 3)
    maps[2] = 0
    chosen = []
    for slices in (2, 3):
        np.save(f"scan{slices}.npy", full[:slices])
        np.save(f"scan{slices}_maps.npy", maps[:slices])
        scan = open_scan(f"scan{slices}.npy")
        masks = {scan.scan_id: torch.from_numpy(own.lines(plane)).expand(4, -1, -1)}
        chosen.append(choose(CgSense(plane), SliceDataset([scan]), masks, seed=0))
    assert chosen[0]["strength"] == chosen[1]["strength"] != CgSense.candidates[0][0]
    assert all(math.isfinite(one["loss"]) for one in chosen)


def test_there_is_nothing_to_choose_for_sense(knees):
    assert choose(Sense((32, 24)), SliceDataset(Source(knees).scans("train", 1)), {}, seed=0) == {}


def test_few_shot_subsets_are_nested(knees):
    source = Source(knees)
    one, two = ([scan.scan_id for scan in source.scans("train", count)] for count in (1, 2))
    assert two[:1] == one


def test_slices_are_divided_by_their_own_scans_scale(knees):
    slices = SliceDataset(Source(knees).scans("train"))
    batch = collate([slices[0], slices[-1]])
    kspace, _, target = normalised(batch)
    for number, one in enumerate((slices[0], slices[-1])):
        assert torch.allclose(target[number] * one.scale, one.target)
        assert torch.allclose(kspace[number] * one.scale, one.kspace)


def test_recipes_fill_in_what_was_not_given_and_nothing_else():
    paper = TrainConfig(recipe="paper", lr=5e-4)
    assert (paper.loss, paper.lr, paper.schedule) == ("l1", 5e-4, "constant")
    assert paper.options["decay_towards"] == "zero"
    assert TrainConfig(recipe="paper", options={"decay_towards": "start"}).options["decay_towards"] == "start"
    assert TrainConfig().loss == RECIPES["tuned"]["loss"]
    assert TrainConfig(model="unet").options == {"channels": 32}


def test_manifest_names_scans_and_kind_of_data(knees, workplace):
    run_of(knees, name="m", model="dc-sense")
    manifest = read_json(workplace / "runs/mri/m/manifest.json")
    assert manifest["status"] == "finished"
    assert manifest["data"]["name"] == "synthetic knee"
    assert not set(manifest["data"]["train"]) & set(manifest["data"]["validation"])


def test_chosen_slices_cover_the_volume_and_keep_their_echoes(knees):
    slices = SliceDataset(Source(knees).scans("train"))
    chosen = [slices.items[index] for index in evenly(slices, 6, together=False).indices]
    assert [(scan.scan_id, place) for scan, place, _ in chosen[::2]] == [
        (s.scan_id, p) for s, p, _ in chosen[1::2]
    ]
    assert {echo for _, _, echo in chosen} == {0, 1}
    assert sorted({place for _, place, _ in chosen}) == [3, 9]
    assert evenly(slices, None, together=False).indices == list(range(len(slices)))


def test_one_budget_of_samples_gives_fewer_epochs_to_more_scans(knees, workplace):
    def epochs(slices: int, **options: Any) -> int:
        return plan_of(TrainConfig(**options), slices).epochs

    assert [epochs(slices, samples=96) for slices in (24, 48, 1000)] == [4, 2, 1]
    assert epochs(24, samples=96, epoch_steps=4, batch_size=8) == 3
    assert plan_of(TrainConfig(epochs=7), 24) is None
    config, _ = run_of(knees, name="budget", samples=48)
    manifest = read_json(workplace / "runs/mri/budget/manifest.json")
    assert (config.epochs, manifest["plan"]["epochs"]) == (12, 2)


def test_minutes_become_a_plan_that_the_manifest_keeps(knees, workplace, monkeypatch):
    monkeypatch.setattr("lab.budget.measure", lambda *_, **__: Pace(0.06, 0.01))
    monkeypatch.setattr("lab.budget.Budget.next", lambda *_: 2)
    run_of(knees, name="minutes", minutes=0.003)
    manifest = read_json(workplace / "runs/mri/minutes/manifest.json")
    assert manifest["plan"] == {"epochs": 2, "epoch_steps": [1, 2]}
    assert manifest["steps"]["total"] == 3
