"""`python -m mri.train`: train a reconstruction method, or choose its strength."""

from typing import TYPE_CHECKING

from lab.cli import main
from mri.config import TrainConfig

if TYPE_CHECKING:
    from lab.plan import Plan


def train(config: TrainConfig) -> dict[str, float]:
    """Train a method for accelerated MRI; without data, on synthetic knees."""
    from data.masks.pool import density
    from data.scans.slices import SliceDataset, collate
    from lab import weights
    from lab.budget import Budget, measure
    from lab.console import say
    from lab.run import Run
    from lab.trainer import fit, prepare
    from mri.experiment import Reconstruction, header
    from mri.models import MODELS, build
    from mri.sampling import evaluation_masks, mask_spec, training_masks
    from mri.search import choose
    from mri.sources import find_source, plane_of, samples

    prepare(config)
    source = find_source(config)
    data = samples(config, source)
    for acc in {config.acc, *config.training_accs}:
        mask_spec(data.train_scans, acc, config.mask)  # refused before there is a run
    with Run.open(config, source.describe(data.train_scans, data.validation_scans)) as folder:
        ky, kz = plane_of([*data.train_scans, *data.validation_scans])
        scans = ", ".join(scan.scan_id for scan in data.train_scans)
        accs = ", ".join(f"{acc:g}" for acc in config.training_accs)
        say(f"{config.model}, slices of {ky} x {kz}, acceleration {accs}, training scans: {scans}")
        masks = training_masks(data.train_scans, config.training_accs, config.mask, config.masks)
        method = build(config.model, (ky, kz), density(masks), **config.options)
        best = choose(method, SliceDataset(data.train_scans, config.echoes), masks, config.seed)
        if best:
            words = ", ".join(f"{name.replace('_', ' E')} {value:g}" for name, value in best.items())
            say(f"{config.model}: best on the training scans: {words}")
        if MODELS[config.model].learned:
            fixed = evaluation_masks(data.validation_scans, config.acc, config.mask)
            experiment = Reconstruction(method, config, masks, fixed)
            parts = data.train, data.validation
            budget = Budget.of(config.minutes, lambda: measure(experiment, *parts, collate=collate))
            plan = plan_of(config, len(data.train))
            best = fit(experiment, *parts, folder, collate=collate, plan=plan, budget=budget)
            say(f"best validation error {best['error']:.5f} of the target's variance (epoch {best['epoch']})")
        else:
            weights.save(folder.weights, method, {**header(method, config), "best": best})
            folder.update(status="finished", best=best)
        say("python -m mri.eval scores the finished runs on the test scans")
    return best


def plan_of(config: TrainConfig, slices: int) -> "Plan | None":
    """How long a run is where --samples says it."""
    from lab.plan import Plan

    if config.minutes is not None or config.samples is None:
        return None
    per_epoch = config.epoch_steps * config.batch_size if config.epoch_steps else slices
    return Plan(max(1, round(config.samples / per_epoch)), config.epoch_steps)


if __name__ == "__main__":
    main(train)
