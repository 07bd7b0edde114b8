"""From the options of a run to its finished folder."""

import csv
import io
from typing import Any

from torch import Tensor
from torch.utils.data import Subset

from data.masks.pool import density
from data.scans.slices import Slice, SliceDataset, collate
from lab import weights
from lab.console import say
from lab.files import write_text
from lab.run import Run
from lab.trainer import fit, prepare
from mri.config import LEARNED, TrainConfig
from mri.experiment import Reconstruction
from mri.models.method import Method, Tunable
from mri.models.registry import build, header
from mri.sampling import evaluation_masks, training_masks
from mri.search import choose_start, choose_strength
from mri.sources import Source, find_source, plane_of


def train(config: TrainConfig, source: Source | None = None) -> dict[str, float]:
    """Train, or choose, what the method has to learn on the training scans; return the best scores."""
    prepare(config)
    source = source or find_source(config)
    training, validation = source.scans("train", config.n_train), source.scans("val")
    plane = plane_of([*training, *validation])
    slices = SliceDataset(training, config.echoes)
    examples = _evenly(slices, config.slices and config.slices * len(training))
    if config.samples is not None:
        config.epochs = max(1, round(config.samples / len(examples)))
        say(f"--samples {config.samples} are {config.epochs} epochs of {len(examples)} slices")
    with Run.open(config, source.describe(training, validation)) as run:
        say(
            f"{config.model} on slices of {plane[0]} x {plane[1]}, acceleration {config.acc:g}, training scans: "
            + ", ".join(scan.scan_id for scan in training)
        )
        masks = training_masks(training, config.acc, config.mask, config.masks)
        method = _method(config, plane, slices, masks)
        if config.model not in LEARNED:
            return _choose(method, config, slices, masks, run)
        fixed = evaluation_masks(validation, config.acc, config.mask)
        best = fit(
            Reconstruction(method, config, masks, fixed),
            examples,
            _evenly(SliceDataset(validation, config.echoes), config.val_slices),
            run,
            collate=collate,
        )
        say(f"best validation error {best.get('error', float('nan')):.5f} of the target's variance")
        say("python -m mri.eval scores the finished runs on the test scans")
    return best


def _method(config: TrainConfig, plane: tuple[int, int], slices: SliceDataset, masks: Tensor) -> Method:
    start = None
    if config.model == "msense" and config.start == "density":
        start = choose_start(config, plane, density(masks), slices, masks)
    return build(config.model, plane, vars(config), density=density(masks), start=start)


def _choose(
    method: Method, config: TrainConfig, slices: SliceDataset, masks: Tensor, run: Run
) -> dict[str, float]:
    best: dict[str, float] = {}
    if isinstance(method, Tunable):
        losses = choose_strength(method, slices, masks, config.seed)
        best = {"strength": float(method.strength), "loss": min(losses.values())}
        text = io.StringIO()
        csv.writer(text).writerows([("strength", "loss"), *losses.items()])
        write_text(run.folder / "metrics.csv", text.getvalue())
        say(f"{config.model}: strength {best['strength']:g} is best on the training scans")
    described: dict[str, Any] = header(config.model, method.plane, vars(config))
    weights.save(run.weights, method, {**described, "acc": config.acc, "mask": config.mask, "best": best})
    run.update(status="finished", best=best)
    return best


def _evenly(slices: SliceDataset, places: int | None) -> SliceDataset | Subset[Slice]:
    """`places` evenly spaced slices of all the scans' volumes, each with all its echoes; None for everything."""
    if places is None:
        return slices
    by_place: dict[tuple[str, int], list[int]] = {}
    for index, (scan, slice_index, _) in enumerate(slices.items):
        by_place.setdefault((scan.scan_id, slice_index), []).append(index)
    groups, wanted = list(by_place.values()), min(places, len(by_place))
    chosen = [groups[(2 * number + 1) * len(groups) // (2 * wanted)] for number in range(wanted)]
    return Subset(slices, [index for group in chosen for index in group])
