"""`python -m text.train`: train a language model under one of the settings that the application compares."""

from typing import TYPE_CHECKING

from lab.cli import main
from text.config import TrainConfig

if TYPE_CHECKING:
    from pathlib import Path

    from lab.trainer import Plan
    from text.experiment import LanguageModelling
    from text.models.parts.language_model import LanguageModel
    from text.sources import Corpus, Windows


def train(config: TrainConfig) -> dict[str, float]:
    """Train one model; a pretrained setting trains the model that it begins with first."""
    import torch

    from lab.console import say
    from lab.run import Run
    from lab.sparsify import ReverseSparsification
    from lab.trainer import Plan, fit, prepare
    from text.experiment import LanguageModelling
    from text.sources import corpus

    start = pretrained_weights(config) if config.way.pretrained else None
    prepare(config)
    text = corpus(config)
    with Run.open(config, text.description) as folder:
        torch.manual_seed(config.seed)
        model = initial_model(config, text, start)
        experiment = LanguageModelling(model, config, text.vocabulary, text.bytes_per_token["validation"])
        windows = text.training(config.way.part, config.context)
        validation = text.held_out("validation", config.context, config.num_val)
        plan = Plan.stored(folder)
        if plan is None and config.minutes is not None:
            plan = fitting_plan(experiment, windows, config.minutes)
        callbacks = [ReverseSparsification(config.switch_at)] if config.way.switches else []
        best = fit(experiment, windows, validation, folder, plan=plan, callbacks=callbacks)
        say(f"{best['bits_per_byte']:.4f} bits per byte of validation text (epoch {best['epoch']})")
        say("python -m text.eval compares the finished runs on the test text")
    return best


def pretrained_weights(config: TrainConfig) -> "Path":
    """The weights of the dense model that a pretrained setting begins with; trained if they are missing."""
    from lab.runs import train_missing

    (first,) = train_missing([config.pretraining()], train)
    return first.weights


def initial_model(config: TrainConfig, text: "Corpus", start: "Path | None" = None) -> "LanguageModel":
    """The model as its training begins: new, or with pretrained weights, projected or with adapters beside them."""
    from lab import weights
    from monarch_core import attach_adapter, monarchize
    from text.models import build
    from text.models.parts.block import Block

    way, blocks = config.way, config.options["blocks"]
    dropout = 0.0 if way.monarch else config.dropout
    begins_dense = start is not None or not way.monarch
    options = {**config.options, "blocks": None if begins_dense else blocks}
    model = build(config.model, text.vocabulary.size, config.context, dropout=dropout, **options)
    if start is not None:
        weights.load(start, app=config.app).load_into(model, start)
        if way.monarch:
            monarchize(model, select=Block, blocks=blocks)
        if config.adapter is not None:
            attach_adapter(model, select=Block, **config.adapter)
    return model


def fitting_plan(experiment: "LanguageModelling", windows: "Windows", minutes: float) -> "Plan":
    """As many steps as fit into the minutes; where the matrices turn dense on the way, both paces count."""
    import copy

    from lab.budget import fitting, measure
    from monarch_core import densify

    config = experiment.config
    pace = measure(experiment, windows, minutes=minutes)
    if config.way.switches:
        dense = copy.deepcopy(experiment)
        densify(dense.model)
        pace = pace.then(measure(dense, windows, minutes=minutes), share=config.switch_at)
    return fitting(minutes, pace, config.epochs)


if __name__ == "__main__":
    main(train)
