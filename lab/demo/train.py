"""`python -m lab.demo.train`: recover a hidden Monarch matrix from fewer examples than a dense one needs."""

from lab.cli import main
from lab.demo.config import TrainConfig


def train(config: TrainConfig) -> dict[str, float]:
    """Train one model; return its best validation scores."""
    import torch

    from lab.console import say
    from lab.demo.experiment import Recovery
    from lab.demo.models import build
    from lab.demo.sources import describe, samples
    from lab.run import Run
    from lab.trainer import fit, prepare

    prepare(config)
    with Run.open(config, describe(config)) as folder:
        training, validation, _ = samples(config, config.seed)
        torch.manual_seed(config.seed)
        model = build(config.model, config.size, **config.options)
        best = fit(Recovery(model, config), training, validation, folder)
        say(f"relative error on validation vectors {best['error']:.4f} (epoch {best['epoch']})")
        say("python -m lab.demo.eval compares the finished runs")
    return best


if __name__ == "__main__":
    main(train)
