"""Training without ground truth: what is looked at, what is held back, and that it learns."""

import math

import pytest
import torch

from data.knee.generate import ensure
from data.masks.pool import MaskPool, density
from data.masks.spec import MaskSpec
from data.scans.sense import Sense as SenseOperator
from data.scans.slices import Slice, SliceDataset, collate
from lab.errors import UserError
from lab.files import read_json
from lab.runs import finished_runs
from mri.config import EvalConfig, TableConfig, TrainConfig
from mri.eval import evaluate
from mri.losses import misfit
from mri.models import MODELS, build
from mri.predictor import load
from mri.sampling import evaluation_masks
from mri.scores import score_runs
from mri.sources import Source
from mri.supervision import SelfSupervised, coarser, density_of_one, reserve, smoothed, split
from mri.table import planned
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
    return SelfSupervised(method, config, masks, reserved or {}, dict.fromkeys(masks, DENSITY))


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
        trained = experiment(model, masks, reserve(masks, dict.fromkeys(masks, DENSITY)))
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
    reserved = reserve(masks, dict.fromkeys(masks, DENSITY))
    hidden = torch.stack([reserved[name] for name in batch.scan_id])[:, None]
    spoilt = batch._replace(kspace=torch.where(hidden, math.nan, batch.kspace))
    assert torch.isfinite(experiment("mcs", masks, reserved).loss(spoilt))
    assert not torch.isfinite(experiment("mcs", masks).loss(spoilt))


def test_all_that_was_sampled_counts_and_only_what_can_be_missing_is_held_back():
    mask = torch.rand(200, 32, 24) < 0.5
    given, weights = split(mask, DENSITY, (0.2, 0.8))
    held = mask & ~given
    assert torch.equal(weights > 0, mask)
    assert torch.equal(weights == 1, given)
    assert not held[:, 12:20, 9:15].any()  # every mask samples the centre: nothing there is ever missing
    outside = DENSITY < 1
    shares = held[:, outside].float().mean(1) / mask[:, outside].float().mean(1)
    assert 0.05 < shares.min() < 0.15  # 0.2 and 0.8 times 1 - density
    assert 0.35 < shares.max() < 0.5


def test_what_is_split_alike_keeps_its_own_samples():
    mask = torch.rand(6, 32, 24) < 0.5
    given, weights = split(mask, DENSITY, (0.2, 0.8), alike=2)
    assert torch.equal(weights > 0, mask)
    both = mask[::2] & mask[1::2]
    assert torch.equal(given[::2] & both, given[1::2] & both)
    assert not torch.equal(given[0] & both[1], given[2] & both[0])


@pytest.mark.parametrize("share", [(0.3, 0.3), (0.2, 0.8)])
def test_samples_stand_for_the_whole_of_kspace_given_or_not(share):
    """E w = 1 at every point; and E (w | not given) = 1, so that what depends on the given samples may be averaged."""
    density = torch.tensor([0.1, 0.3, 0.6, 0.95, 1.0])
    mask = torch.rand(4000, 100, 5) < density
    given, weights = split(mask, density, share)
    assert torch.allclose(weights.mean((0, 1)), torch.ones(5), rtol=0.03)
    missing = ~given[..., :4]
    assert torch.allclose(
        (weights[..., :4] * missing).sum((0, 1)) / missing.sum((0, 1)), torch.ones(4), rtol=0.06
    )


def test_the_loss_estimates_the_squared_error_against_full_sampling(problem):
    """Over masks, up to what no image explains: with exact maps nothing."""
    given = problem((12, 10), batch=1)
    density = torch.linspace(0.2, 1.0, 10).expand(12, 10)
    image = given.image + 0.1 * torch.randn_like(given.image)
    masks = torch.rand(4000, 12, 10) < density
    weights = split(masks, density, (0.5, 0.5))[1]
    parts = [each.expand(len(masks), *each.shape[1:]) for each in (image, given.full, given.maps)]
    energy = (weights[:, None] * given.full.abs().square()).sum((1, 2, 3))
    found = (misfit(*parts, weights) * energy).mean()
    assert float(found) == pytest.approx(float((image - given.image).abs().square().sum()), rel=0.02)


def test_zero_shot_weights_know_that_reserved_samples_are_missing(batch, masks, monkeypatch):
    reserved, seen = reserve(masks, dict.fromkeys(masks, DENSITY)), []

    def watched(mask, density, *others):
        seen.append(density.unique().tolist())
        return split(mask, density, *others)

    monkeypatch.setattr("mri.supervision.split", watched)
    for each in ({}, reserved):
        experiment("mcs", masks, each).loss(batch)
    assert seen[0] == [0.5, 1.0]
    assert seen[1] == pytest.approx([0.5 * (1 - 0.3 * 0.5), 1.0])


def test_at_a_coarser_resolution_the_corners_are_predicted_from_the_rest():
    ky, kz = torch.meshgrid(torch.arange(40) - 20, torch.arange(32) - 16, indexing="ij")
    radius = torch.hypot(ky / 20, kz / 16)
    density = (1 - 0.7 * radius).where(radius < 1, 0.0)
    mask = torch.rand(3000, 40, 32) < density
    field = torch.zeros(3000, 1, 1, 1).expand(3000, 1, 40, 32)
    _, maps, mask, density, region = coarser(field, field, mask, density.expand(3000, 40, 32))
    assert maps.shape[-2:] == mask.shape[-2:] == region.shape[-2:] == (28, 22)
    assert density.min() > 0  # corners and all
    assert not region[:, [0, 0, -1, -1], [0, -1, 0, -1]].any()
    assert float(region.float().mean()) == pytest.approx(math.pi / 4, abs=0.03)
    given, weights = split(mask, density, (0.2, 0.8), region)
    assert not (given & ~region).any()
    assert torch.equal(weights > 0, mask)
    assert float((weights.mean(0) - 1).abs().mean()) < 0.05
    assert float(weights.mean(0)[~region[0]].mean()) == pytest.approx(1, abs=0.02)


def test_a_coarser_problem_is_that_of_the_coarser_image():
    """A smooth image has next to no k-space outside the crop, and smooth maps can be interpolated."""
    ky, kz = torch.meshgrid(torch.linspace(-1, 1, 64), torch.linspace(-1, 1, 48), indexing="ij")
    image = torch.exp(-12 * (ky**2 + kz**2)).to(torch.complex64)[None]
    maps = torch.polar(torch.ones(1, 2, 64, 48), torch.stack([ky, 2 * kz])[None]) / 2**0.5
    everything = torch.ones(1, 64, 48, dtype=torch.bool)
    kspace, coarse, *_ = coarser(SenseOperator(maps)(image), maps, everything, everything.float())
    found = SenseOperator(coarse).adjoint(kspace)
    assert found.shape == (1, 44, 34)
    assert (SenseOperator(coarse)(found) - kspace).abs().max() < 0.01 * kspace.abs().max()
    assert found.abs().sum() / image.abs().sum() == pytest.approx((44 * 34 / 64 / 48) ** 0.5, rel=0.02)


def test_slices_too_small_to_be_made_coarser_stay_as_they_are():
    fields = (
        torch.ones(1, 1, 14, 40),
        torch.ones(1, 1, 14, 40),
        torch.ones(1, 14, 40) > 0,
        torch.ones(1, 14, 40),
    )
    *same, region = coarser(*fields)
    assert all(one is other for one, other in zip(fields, same, strict=True))
    assert region.all()


def test_reserved_samples_depend_on_the_scan_alone():
    masks, densities = {name: torch.rand(32, 24) < 0.5 for name in "ab"}, dict.fromkeys("ab", DENSITY)
    first, second = reserve(masks, densities), reserve(dict(reversed(masks.items())), densities)
    assert all(torch.equal(first[name], second[name]) for name in masks)
    same = reserve({name: torch.ones(32, 24, dtype=torch.bool) for name in "ab"}, densities)
    assert not torch.equal(same["a"], same["b"])


def test_a_density_counted_on_few_masks_is_smoothed_within_its_region():
    ky, kz = torch.meshgrid(torch.linspace(-1, 1, 64), torch.linspace(-1, 1, 48), indexing="ij")
    radius = torch.hypot(ky, kz)
    true = (0.6 - 0.5 * radius).where(radius > 0.3, 1.0).where(radius < 1, 0.0)
    counted = (torch.rand(30, 64, 48) < true).float().mean(0)
    found = smoothed(counted)
    assert (found[radius < 0.3] == 1).all()
    assert (found[radius > 1.15] == 0).all()
    inner = (radius > 0.3) & (radius < 0.95)
    errors = [((each - true)[inner] / true[inner]).abs() for each in (counted, found)]
    assert errors[1].max() < 0.35 < errors[0].max()
    assert errors[1].mean() < 0.3 * errors[0].mean()


def test_misfit_is_the_weighted_error_of_what_the_coils_measure(problem):
    given = problem((12, 10))
    weights = torch.rand(2, 12, 10) * (torch.rand(2, 12, 10) < 0.3)
    image = given.image + 0.1 * torch.randn_like(given.image)
    found = misfit(image, given.full, given.maps, weights)
    for index in range(2):
        error = SenseOperator(given.maps[index])(image[index]) - given.full[index]
        sizes = [(weights[index] * each.abs().square()).sum() for each in (error, given.full[index])]
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


def test_zero_shot_runs_of_two_scans_are_one_row_and_each_reconstructs_its_own(knees, workplace):
    scans = Source(knees).scans("test")
    for scan in scans[::-1]:
        options = {"scan": scan.scan_id, "name": scan.scan_id, "seed": 0}
        train(TrainConfig(data=knees, supervision="zero-shot", epochs=1, slices=2, **options, **SMALL))
    runs = finished_runs(TrainConfig, workplace / "runs/mri")
    for only in (scans[1].scan_id, None):  # no run may be for the first scan, which figures show
        evaluate(EvalConfig(only=only))
    _, row = score_runs(runs, scans, "random", workplace / "scores")
    assert all(row.knows(scan) and row.run_for(scan).name == scan.scan_id for scan in scans)


@pytest.mark.parametrize(
    "options", [{"supervision": "zero-shot"}, {"supervision": "self", "scan": "MTR_001"}]
)
def test_a_scan_is_named_for_zero_shot_and_only_then(options):
    with pytest.raises(UserError, match="go together"):
        TrainConfig(**options)


def test_the_density_of_one_mask_is_that_of_its_neighbourhoods():
    lines = torch.zeros(60, 64, dtype=torch.bool)
    lines[:, ::4] = True
    lines[:, 24:40] = True
    found = density_of_one(lines)
    assert (found[:, 24:40] == 1).all()
    assert (found[:, 42:57] - 0.25).abs().max() < 0.08  # a square of 13 holds three lines or four
    assert (found[:, 61:] == 0).all()  # beyond the last line

    pool = MaskPool(MaskSpec("poisson", (96, 64), 3.0)).training(24)
    true = smoothed(density(pool))
    errors = [(density_of_one(mask) / true - 1)[mask & (true < 1)] for mask in pool]
    assert torch.cat(errors).square().mean().sqrt() < 0.25
    assert torch.cat(errors).mean().abs() < 0.05


def test_a_density_needs_several_masks():
    TrainConfig(masks=1)
    with pytest.raises(UserError, match="--masks must be at least 4, not 1 with --supervision self"):
        TrainConfig(masks=1, supervision="self")


def test_an_unknown_scan_is_refused_with_those_there_are(knees):
    with pytest.raises(UserError, match=r"no scan 'MTR_999'.*MTR_001"):
        Source(knees).scan("MTR_999")


def test_a_data_set_of_one_scan_is_enough_for_zero_shot(tmp_path):
    root = ensure(1, out=tmp_path / "one", shape=(4, 32, 24), jobs=1)
    source = Source(root)
    assert source.splits == ["train"]
    assert source.scan("MTR_001").num_slices == 4


@pytest.mark.parametrize(("model", "options"), [("cg-sense", {}), ("msense", {"start": "density"})])
def test_what_is_tuned_on_ground_truth_is_refused_without(model, options, knees, workplace):
    config = {**SMALL, "model": model, "options": options}
    with pytest.raises(UserError, match=f"{model} with these options is tuned on fully sampled images"):
        train(TrainConfig(data=knees, num_train=1, supervision="self", **config))


def test_a_table_without_ground_truth_tunes_classical_methods_with_it():
    config = TableConfig(models=["mcs", "cg-sense"], supervision="self", accs=[4.0], few_shot=[])
    found = {run.model: run.supervision for run in planned(config)}
    assert found == {"mcs": "self", "cg-sense": "full"}
