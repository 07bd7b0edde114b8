"""`python -m mri.train`: train a reconstruction method, or choose its one number."""

from typing import TYPE_CHECKING

from lab.cli import main
from mri.config import TrainConfig

if TYPE_CHECKING:
    from lab.trainer import Plan
    from mri.experiment import Reconstruction
    from mri.sources import Samples


def train(config: TrainConfig) -> dict[str, float]:
    """Train a method for accelerated MRI; without data, on synthetic knees."""
    from data.masks.pool import density
    from data.scans.slices import SliceDataset, collate
    from lab import weights
    from lab.console import say
    from lab.run import Run
    from lab.trainer import Plan, fit, prepare
    from mri.experiment import Reconstruction, header
    from mri.models import MODELS, build
    from mri.sampling import evaluation_masks, mask_spec, training_masks
    from mri.search import choose
    from mri.sources import find_source, plane_of, samples

    prepare(config)
    source = find_source(config)
    data = samples(config, source)
    for acc in {config.acc, *config.training_accs}:
        mask_spec(
            data.train_scans, acc, config.mask
        )  # what cannot be sampled is refused before there is a run
    with Run.open(config, source.describe(data.train_scans, data.validation_scans)) as folder:
        ky, kz = plane_of([*data.train_scans, *data.validation_scans])
        scans = ", ".join(scan.scan_id for scan in data.train_scans)
        accs = ", ".join(f"{acc:g}" for acc in config.training_accs)
        say(f"{config.model}, slices of {ky} x {kz}, acceleration {accs}, training scans: {scans}")
        masks = training_masks(data.train_scans, config.training_accs, config.mask, config.masks)
        method = build(config.model, (ky, kz), density(masks), **config.options)
        best = choose(method, SliceDataset(data.train_scans, config.echoes), masks, config.seed)
        if best:
            say(f"{config.model}: {best['strength']:g} is the best strength on the training scans")
        if MODELS[config.model].learned:
            fixed = evaluation_masks(data.validation_scans, config.acc, config.mask)
            experiment = Reconstruction(method, config, masks, fixed)
            plan = Plan.stored(folder) or budget(experiment, data)
            best = fit(experiment, data.train, data.validation, folder, collate=collate, plan=plan)
            say(f"best validation error {best['error']:.5f} of the target's variance (epoch {best['epoch']})")
        else:
            weights.save(folder.weights, method, {**header(method, config), "best": best})
            folder.update(status="finished", best=best)
        say("python -m mri.eval scores the finished runs on the test scans")
    return best


def budget(experiment: "Reconstruction", data: "Samples") -> "Plan":
    """How long a run is: as long as --minutes or --samples allows, otherwise --epochs."""
    from data.scans.slices import collate
    from lab.budget import fitting, measure
    from lab.trainer import Plan

    config = experiment.config
    if config.minutes is not None:
        pace = measure(experiment, data.train, data.validation, minutes=config.minutes, collate=collate)
        return fitting(config.minutes, pace)
    if config.samples is None:
        return Plan.of(config)
    per_epoch = config.epoch_steps * config.batch_size if config.epoch_steps else len(data.train)
    return Plan(max(1, round(config.samples / per_epoch)), config.epoch_steps)


if __name__ == "__main__":
    main(train)
