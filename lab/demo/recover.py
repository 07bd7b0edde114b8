"""Learn a hidden Monarch matrix from pairs (x, Mx + noise), with a Monarch or a dense model."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from lab.console import say
from lab.demo.config import DemoConfig
from lab.experiment import Experiment
from lab.files import fingerprint
from lab.run import Run
from lab.trainer import fit, prepare
from monarch_core import Monarch


class Recovery(Experiment):
    """Squared loss; the score is the relative error of Mx on new vectors."""

    config: DemoConfig

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = batch
        return (self.model(x) - y).square().mean()

    def scores(self, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        x, y = batch
        return {"error": (self.model(x) - y).norm(dim=-1) / y.norm(dim=-1)}

    def header(self) -> dict[str, Any]:
        return {"app": "demo", "model": self.config.model, "size": self.config.size}


def build_model(name: str, size: int) -> nn.Module:
    """The model that a header or a config names."""
    return Monarch(size) if name == "monarch" else nn.Linear(size, size, bias=False)


def examples(config: DemoConfig) -> tuple[TensorDataset, TensorDataset]:
    """Training pairs with noise and test pairs without, from one hidden matrix per seed."""
    generator = torch.Generator().manual_seed(config.seed)
    with torch.random.fork_rng():
        torch.manual_seed(config.seed + 1)
        hidden = Monarch(config.size).to_dense().detach()
    x = torch.randn(config.samples + 256, config.size, generator=generator)
    y = x @ hidden.T
    noise = config.noise * torch.randn(config.samples, config.size, generator=generator)
    n = config.samples
    return TensorDataset(x[:n], y[:n] + noise), TensorDataset(x[n:], y[n:])


def train(config: DemoConfig) -> dict[str, float]:
    """Run the experiment that `config` describes; return the best scores."""
    prepare(config)
    data: dict[str, Any] = {
        "name": "hidden Monarch matrix",
        "size": config.size,
        "samples": config.samples,
        "noise": config.noise,
    }
    data["fingerprint"] = fingerprint({**data, "seed": config.seed})
    with Run.open(config, data) as run:
        training, test = examples(config)
        torch.manual_seed(config.seed)
        best = fit(Recovery(build_model(config.model, config.size), config), training, test, run)
        say(f"relative error on new vectors {best['error']:.4f} (epoch {best['epoch']})")
        say("python -m lab.demo table compares the finished runs")
    return best
