"""`python -m text.train`: train a language model under one of the settings that the application compares."""

from typing import TYPE_CHECKING

from lab.cli import main
from text.config import TrainConfig

if TYPE_CHECKING:
    from pathlib import Path

    from lab.budget import Pace
    from text.experiment import LanguageModelling
    from text.models.parts.language_model import LanguageModel
    from text.sources import Corpus, Windows


def train(config: TrainConfig) -> dict[str, float]:
    """Train one model; a pretrained setting trains the model that it begins with first."""
    import torch

    from lab.budget import Budget
    from lab.console import say
    from lab.run import Run
    from lab.sparsify import ReverseSparsification
    from lab.trainer import fit, prepare
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
        # As in the comparison of settings, the time of validations does not count.
        budget = Budget.of(
            config.minutes, lambda: pace(experiment, windows), epochs=config.epochs, validations=False
        )
        callbacks = [ReverseSparsification(config.switch_at)] if config.way.switches else []
        best = fit(experiment, windows, validation, folder, budget=budget, callbacks=callbacks)
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


def pace(experiment: "LanguageModelling", windows: "Windows") -> "Pace":
    """The pace of a run; where its matrices turn dense on the way, steps take another time from then on."""
    import copy

    from lab.budget import measure
    from monarch_core import densify

    config = experiment.config
    first = measure(experiment, windows)
    if not config.way.switches:
        return first
    dense = copy.deepcopy(experiment)
    densify(dense.model)
    return first.then(measure(dense, windows), config.switch_at)


if __name__ == "__main__":
    main(train)
