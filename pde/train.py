"""`python -m pde.train`: train a neural operator on a flow."""

from lab.cli import main
from pde.config import TrainConfig
from pde.problems import OWN


def train(config: TrainConfig) -> dict[str, float]:
    """Train one model on one problem; the data is made when it is missing."""
    import torch

    from lab.budget import Budget
    from lab.checks import flag
    from lab.console import say
    from lab.run import Run
    from lab.trainer import fit, prepare
    from pde.experiment import make_training
    from pde.sources import OnDemand, Split

    prepare(config)
    split = Split(config)
    if config.problem == OWN:
        from data.fields.info import spread, summary

        say(summary(split.train))
        spread(split.train).print()
    case = config.about.case
    if case is not None and case not in split.train.parameters:
        value = getattr(config, case)
        say(
            f"{split.train.path} does not state its {case}; tables list it under {value:g}, from {flag(case)}"
        )
    samples, validation = split.load(split.train), split.load(split.validation).dataset()
    if isinstance(samples, OnDemand):
        size = split.train.nbytes / 2**30
        say(
            f"the training samples take {size:.1f} GB, more than --memory-gb {config.memory_gb:g}: read when needed"
        )
    torch.manual_seed(config.seed)
    training, data = make_training(config, samples, split.grid, split.meaning)
    with Run.open(config, split.describe()) as folder:
        budget = Budget.of(config.minutes, lambda: training.pace(data, validation))
        best = fit(training, data, validation, folder, budget=budget)
        say(f"relative error of the forecasts of {len(validation)} validation samples {best['error']:.4f}")
        say("python -m pde.eval compares the finished runs on the test samples")
    return best


if __name__ == "__main__":
    main(train)
