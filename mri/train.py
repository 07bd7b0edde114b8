"""`python -m mri.train`: train a reconstruction method, or choose its strength."""

from typing import TYPE_CHECKING

from lab.cli import main
from mri.config import TrainConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lightning.pytorch import Callback
    from torch import Tensor

    from data.scans.scan import Scan
    from lab.plan import Plan
    from mri.experiment import Reconstruction
    from mri.models.parts.method import Method
    from mri.sources import Samples


def train(config: TrainConfig) -> dict[str, float]:
    """Train a method for accelerated MRI; without data, on synthetic knees."""
    from data.masks.pool import density
    from data.masks.spec import MaskSpec
    from data.scans.slices import SliceDataset, collate
    from lab import weights
    from lab.budget import Budget, measure
    from lab.console import say
    from lab.errors import UserError
    from lab.run import Run
    from lab.trainer import fit, prepare
    from mri.experiment import header
    from mri.models import MODELS, build
    from mri.sampling import training_masks
    from mri.search import choose
    from mri.sources import find_source, planes_of, samples, words_for
    from mri.ssim import check_plane

    prepare(config)
    source = find_source(config)
    data = samples(config, source)
    scans = [*data.train_scans, *data.validation_scans]
    if config.echoes_together and max(scan.num_echoes for scan in data.train_scans) == 1:
        raise UserError(
            "--joint-echoes needs scans with several echoes; the training scans have one. Leave it out."
        )
    for plane in planes_of(scans):
        check_plane(plane)
    complete = [scan for scan in scans if not scan.undersampled]
    for acc in {config.acc, *config.training_accs}:
        for grid in {scan.acquired_grid for scan in complete}:
            MaskSpec(config.mask, grid, acc)  # refused before there is a run
    with Run.open(config, source.describe(data.train_scans, data.validation_scans)) as folder:
        planes = planes_of(scans)
        names = ", ".join(scan.scan_id for scan in data.train_scans)
        accs = ", ".join(f"{acc:g}" for acc in accelerations(config, data.train_scans))
        say(f"{config.model}, slices of {words_for(planes)}, acceleration {accs}, training scans: {names}")
        if len(complete) < len(scans):
            say("scans that were acquired undersampled are taken as they are, whatever --acc says")
        masks = training_masks(complete, config.training_accs, config.mask, config.masks)
        usual = next(scan for scan in scans if scan.matrix_shape[1:] == planes[0])
        seen = None if usual.undersampled else density(masks[usual.scan_id])
        method = build(config.model, planes[0], seen, **config.options)
        assert method.joins_echoes == config.echoes_together  # or batches would not be what the method takes
        if len(planes) > 1 and not method.any_plane:
            raise UserError(
                f"{config.model} with these options takes slices of one size, but the scans have {words_for(planes)}; "
                f"leave the others out with --plane [{planes[0][0]},{planes[0][1]}]."
            )
        if method.candidates and config.supervision != "full":
            raise UserError(
                f"{config.model} with these options is tuned on fully sampled images, which --supervision "
                f"{config.supervision} does without; leave out one or the other."
            )
        best = choose(method, SliceDataset(data.train_scans, config.echoes), masks, config.seed)
        if best:
            words = ", ".join(f"{name.replace('_', ' E')} {value:g}" for name, value in best.items())
            say(f"{config.model}: best on the training scans: {words}")
        if MODELS[config.model].learned:
            experiment = supervised(method, config, masks, data)
            parts = data.train, data.validation
            budget = Budget.of(config.minutes, lambda: measure(experiment, *parts, collate=collate))
            plan = plan_of(config, len(data.train))
            stopping = early_stopping(config.epochs if plan is None else plan.epochs) if config.scan else []
            best = fit(
                experiment, *parts, folder, collate=collate, plan=plan, budget=budget, callbacks=stopping
            )
            say(f"best validation error {best['error']:.5f} {experiment.unit} (epoch {best['epoch']})")
        else:
            weights.save(folder.weights, method, {**header(method, config), "best": best})
            folder.update(status="finished", best=best)
        if len(complete) < len(scans):
            say(f"python -m mri.reconstruct --weights {folder.weights} --input SCAN reconstructs a scan")
        else:
            say("python -m mri.eval scores the finished runs on the test scans")
    return best


def supervised(
    method: "Method", config: TrainConfig, masks: "Mapping[str, Tensor]", data: "Samples"
) -> "Reconstruction":
    """What the method is trained on: fully sampled images, or held-back samples of undersampled scans."""
    from data.masks.pool import density
    from mri.experiment import Reconstruction
    from mri.sampling import evaluation_masks
    from mri.supervision import SelfSupervised, reserve, smoothed

    training, validation = (
        evaluation_masks([scan for scan in scans if not scan.undersampled], config.acc, config.mask)
        for scans in (data.train_scans, data.validation_scans)
    )
    if config.supervision == "full":
        return Reconstruction(method, config, masks, validation)
    densities = {name: smoothed(density(several)) for name, several in masks.items()}
    validated = [scan.scan_id for scan in data.validation_scans if scan.undersampled]
    acc = max(accelerations(config, data.train_scans))
    reserved = reserve(validation, densities)
    return SelfSupervised(method, config, training | validation, reserved, densities, validated, acc)


def accelerations(config: TrainConfig, scans: "Sequence[Scan]") -> list[float]:
    """Those that a run learns from: what is asked for and, of scans acquired undersampled, their own."""
    from mri.sampling import own_accelerations

    own = own_accelerations(scans)
    asked = config.training_accs if len(own) < len(scans) else []
    return sorted({*own.values(), *asked})


def early_stopping(epochs: int) -> "list[Callback]":
    """Stop when the validation error has not fallen for a third of the run; the best weights are kept anyway."""
    from lightning.pytorch.callbacks import EarlyStopping

    return [EarlyStopping("error", patience=max(2, epochs // 3))]


def plan_of(config: TrainConfig, slices: int) -> "Plan | None":
    """How long a run is where --samples says it."""
    from lab.plan import Plan

    if config.minutes is not None or config.samples is None:
        return None
    per_epoch = config.epoch_steps * config.batch_size if config.epoch_steps else slices
    return Plan(max(1, round(config.samples / per_epoch)), config.epoch_steps)


if __name__ == "__main__":
    main(train)
