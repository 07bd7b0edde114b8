"""Training without ground truth: what is looked at, what is held back, and that it learns."""

import math

import pytest
import torch

from data.scans.sense import Sense as SenseOperator
from data.scans.slices import Slice, SliceDataset, collate
from lab.errors import UserError
from lab.files import read_json
from mri.config import TrainConfig
from mri.losses import misfit
from mri.models import MODELS, build
from mri.predictor import load
from mri.sampling import evaluation_masks
from mri.sources import Source
from mri.supervision import SelfSupervised, reserve, split
from mri.train import train

DENSITY = torch.full((32, 24), 0.5)
DENSITY[12:20, 9:15] = 1
LEARNED = [name for name, entry in MODELS.items() if entry.learned]


@pytest.fixture(scope="module")
def batch(knees) -> Slice:
    slices = SliceDataset(Source(knees).scans("train", 2))
    return collate([slices[index] for index in (7, 31)])


@pytest.fixture(scope="module")
def masks(knees) -> dict[str, torch.Tensor]:
    return evaluation_masks(Source(knees).scans("train", 2), 2.0, "random")


def experiment(model: str, masks, reserved=None, **options) -> SelfSupervised:
    torch.manual_seed(0)
    config = TrainConfig(
        model=model, supervision="self", shift=0.1, turn=True, flip=True, noise=1.0, **options
    )
    method = build(model, (32, 24), DENSITY, **config.options)
    return SelfSupervised(method, config, masks, reserved or {})


@pytest.mark.parametrize("model", LEARNED)
def test_neither_targets_nor_what_was_not_sampled_are_looked_at(model, batch, masks):
    sampled = torch.stack([masks[name] for name in batch.scan_id])[:, None]
    spoilt = batch._replace(
        kspace=torch.where(sampled, batch.kspace, math.nan),
        target=torch.full_like(batch.target, math.nan),
        scale=torch.full((2,), math.nan),
    )
    losses, gradients, scores = [], [], []
    for given in (batch, spoilt):
        trained = experiment(model, masks, reserve(masks, DENSITY))
        torch.manual_seed(1)
        losses.append(trained.loss(given))
        losses[-1].backward()
        gradients.append([p.grad for p in trained.parameters() if p.grad is not None])
        scores.append(trained.scores(given)["error"])
    assert torch.isfinite(losses[1])
    assert torch.equal(*losses)
    assert torch.equal(*scores)
    assert gradients[0]
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


def test_samples_reserved_for_validation_are_not_trained_on(batch, masks):
    reserved = reserve(masks, DENSITY)
    hidden = torch.stack([reserved[name] for name in batch.scan_id])[:, None]
    spoilt = batch._replace(kspace=torch.where(hidden, math.nan, batch.kspace))
    assert torch.isfinite(experiment("mcs", masks, reserved).loss(spoilt))
    assert not torch.isfinite(experiment("mcs", masks).loss(spoilt))


def test_given_and_held_samples_are_all_that_was_sampled_and_none_twice():
    mask = torch.rand(200, 32, 24) < 0.5
    given, held = split(mask, DENSITY, (0.2, 0.8))
    assert torch.equal(given | held, mask)
    assert not (given & held).any()
    assert not held[:, 12:20, 9:15].any()  # every mask samples the centre: nothing there is ever missing
    outside = DENSITY < 1
    shares = held[:, outside].float().mean(1) / mask[:, outside].float().mean(1)
    assert 0.05 < shares.min() < 0.15  # 0.2 and 0.8 times 1 - density
    assert 0.35 < shares.max() < 0.5


def test_what_is_held_back_stands_for_what_was_not_sampled():
    density = torch.linspace(0.1, 0.9, 16).expand(12, 16)
    mask = torch.rand(20000, 12, 16) < density
    held = split(mask, density, (0.5, 0.5))[1]
    weight = (held / density).mean((0, 1))
    missing = (~mask).float().mean((0, 1))
    assert torch.allclose(weight / weight.sum(), missing / missing.sum(), rtol=0.05)


def test_reserved_samples_depend_on_the_scan_alone():
    masks = {name: torch.rand(32, 24) < 0.5 for name in "ab"}
    first, second = reserve(masks, DENSITY), reserve(dict(reversed(masks.items())), DENSITY)
    assert all(torch.equal(first[name], second[name]) for name in masks)
    same = reserve({name: torch.ones(32, 24, dtype=torch.bool) for name in "ab"}, DENSITY)
    assert not torch.equal(same["a"], same["b"])


def test_misfit_is_the_weighted_error_of_what_the_coils_measure(problem):
    given = problem((12, 10))
    weights = torch.rand(2, 12, 10) * (torch.rand(2, 12, 10) < 0.3)
    image = given.image + 0.1 * torch.randn_like(given.image)
    found = misfit(image, given.full, given.maps, weights)
    for index in range(2):
        error = SenseOperator(given.maps[index])(image[index]) - given.full[index]
        sizes = [(weights[index] * each.abs()).sum() for each in (error, given.full[index])]
        assert torch.allclose(found[index], sizes[0] / sizes[1])
    assert misfit(given.image, given.full, given.maps, weights).max() < 1e-12


SMALL = {"preset": "smoke", "model": "mcs", "options": {"iterations": 3}, "batch_size": 4, "threads": 1,
         "mask": "random", "lr": 1e-3, "masks": 4, "val_slices": 4}  # fmt: skip


def test_self_supervision_learns_to_predict_samples_of_another_knee(knees, workplace):
    train(TrainConfig(data=knees, num_train=1, name="s", supervision="self", epochs=6, slices=6, **SMALL))
    rows = (workplace / "runs/mri/s/metrics.csv").read_text().splitlines()
    at = rows[0].split(",").index("error")
    errors = [float(row.split(",")[at]) for row in rows[1:]]
    assert min(errors) < 0.97 * errors[0]


def test_zero_shot_learns_from_a_test_scan_alone(knees, workplace):
    name = Source(knees).scans("test")[0].scan_id
    train(TrainConfig(data=knees, name="z", supervision="zero-shot", scan=name, epochs=2, slices=2, **SMALL))
    described = read_json(workplace / "runs/mri/z/manifest.json")
    assert described["data"]["train"] == described["data"]["validation"] == [name]
    assert load(workplace / "runs/mri/z/weights.safetensors").header["model"] == "mcs"


@pytest.mark.parametrize(
    "options", [{"supervision": "zero-shot"}, {"supervision": "self", "scan": "MTR_001"}]
)
def test_a_scan_is_named_for_zero_shot_and_only_then(options):
    with pytest.raises(UserError, match="go together"):
        TrainConfig(**options)


def test_an_unknown_scan_is_refused_with_those_there_are(knees):
    with pytest.raises(UserError, match=r"no scan 'MTR_999'.*MTR_001"):
        Source(knees).scan("MTR_999")
